"""Readable tables of the figures, in percent with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.runs import DataSet

__all__ = ["tables"]

Row = list[str]


def tables(result: Mapping[str, Any], names: Sequence[str], sets: Sequence[DataSet]) -> Iterator[str]:
    def show(name: str, key: str) -> str:
        full = key if name == "surefoot" else f"{name}/{key}"
        return _percent(result.get(full), result.get(f"{full}.ci"))

    grounding = [part.name for part in sets if part.grounding]
    if grounding:
        means = ("balanced_accuracy", "balanced_accuracy_loso", "auroc", "false_pass", "false_strip")
        yield f"\nMean over {len(grounding)} grounding sets, in percent, with 95% intervals"
        yield from _table(
            ["system", "bal. acc.", "bal. acc. (loso)", "AUROC", "false pass", "false strip", "abstained"],
            [
                [
                    name,
                    *(show(name, f"mean.{column}") for column in means),
                    str(
                        result.get("mean.abstained" if name == "surefoot" else f"{name}/mean.abstained", "-")
                    ),
                ]
                for name in names
            ],
        )
        for title, figure in (("Balanced accuracy", "balanced_accuracy"), ("AUROC", "auroc")):
            yield f"\n{title} by set"
            yield from _table(
                ["set", *names],
                [[part, *(show(name, f"{part}.{figure}") for name in names)] for part in grounding],
            )
        yield "\nsurefoot by set"
        by_set = ("balanced_accuracy", "balanced_accuracy_strict", "false_pass", "false_strip", "ece")
        yield from _table(
            ["set", "bal. acc.", "strict", "false pass", "false strip", "ECE"],
            [[part, *(show("surefoot", f"{part}.{kind}") for kind in by_set)] for part in grounding],
        )
    for part in sets:
        if not part.answers:
            continue
        tasks = [part.name, *(f"{part.name}.{task}" for task in sorted({row.task for row in part.answers}))]
        yield f"\nAnswers of {part.name}: which hold a hallucination, and where"
        kinds = ("auroc", "auroc_worst", "auroc_mean", "f1", "f1_tuned", "f1_always", "span_f1")
        yield from _table(
            [
                "system",
                "answers",
                "AUROC",
                "(by mean)",
                "F1",
                "F1 tuned",
                "F1 always",
                "span F1",
                "claim AUROC",
            ],
            [
                [name, task, *(show(name, f"{task}.{kind}") for kind in kinds)]
                for name in names
                for task in tasks
            ],
        )
        lost = result.get(f"{part.name}.no_claims_ids")
        if lost:
            yield f"without a checkable claim (surefoot): {', '.join(lost)}"
    for where, error in result["errors"].items():
        yield f"FAILED {where}: {error}"


def _table(head: Row, body: Sequence[Row]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
    line: Callable[[Row], str] = lambda row: "  ".join(  # noqa: E731
        cell.ljust(width) for cell, width in zip(row, widths, strict=True)
    ).rstrip()
    yield line(head)
    yield "  ".join("-" * width for width in widths)
    for row in body:
        yield line(row)


def _percent(value: object, ends: object) -> str:
    if not isinstance(value, (int, float)):
        return "-"
    if isinstance(ends, list):
        return f"{100 * value:.1f} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"
    return f"{100 * value:.1f}"
