"""Figures of scored claims, by set: the same definitions as ``benchmarks/quality.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from training.verify.measured import Item

from surefoot import metrics
from surefoot.metrics.calibration import choose_threshold

__all__ = ["answer_figures", "claim_figures", "is_answer_set", "loso", "means", "table"]

KEYS = ("auroc", "balanced_accuracy", "false_pass", "false_strip", "ece")


def is_answer_set(name: str) -> bool:
    """Sets of answers are called ``NAME.TASK``."""
    return "." in name


def claim_figures(
    items: Sequence[Item], support: np.ndarray, *, threshold: float = 0.5, vetoed: np.ndarray | None = None
) -> dict[str, dict[str, Any]]:
    """Per set: AUROC, balanced accuracy at a threshold fixed elsewhere, both errors, calibration error.

    Args:
        items: claims; one that the package abstains on counts as not supported with support 0.
        support: [claims], 0 to 1.
        threshold: from which a claim passes.
        vetoed: [claims], true where a rule rejects the claim whatever its support.
    """
    names = np.asarray([item.set for item in items])
    good = np.asarray([not item.bad for item in items])
    asked = np.asarray([item.selected is not None for item in items])
    score = np.where(asked, support, 0.0)
    passed = asked & (score >= threshold) & (True if vetoed is None else ~vetoed)
    found: dict[str, dict[str, Any]] = {}
    for name in sorted(set(names.tolist())):
        here = names == name
        labels, said, values = good[here], passed[here], score[here]
        found[name] = {
            "n": int(here.sum()),
            "supported": int(labels.sum()),
            "auroc": metrics.auroc(labels, values),
            "balanced_accuracy": metrics.balanced_accuracy(labels, said),
            "false_pass": float(said[~labels].mean()) if (~labels).any() else None,
            "false_strip": float((~said[labels]).mean()) if labels.any() else None,
            "ece": metrics.expected_calibration_error(labels, np.clip(values, 0, 1)),
        }
    return found


def loso(items: Sequence[Item], support: np.ndarray) -> dict[str, float | None]:
    """Balanced accuracy of each grounding set at the threshold that is best on the others."""
    names = np.asarray([item.set for item in items])
    good = np.asarray([not item.bad for item in items])
    sets = [name for name in sorted(set(names.tolist())) if not is_answer_set(name)]
    found: dict[str, float | None] = {}
    for name in sets:
        others = [n for n in sets if n != name and not (n[:9] == name[:9] == "wice_clai")]
        member = np.isin(names, others)
        weights = np.zeros(len(names))
        for other in others:
            for value in (True, False):
                rows = (names == other) & (good == value)
                if rows.any():
                    weights[rows] = 1 / rows.sum()
        threshold = choose_threshold(support[member], good[member], weights=weights[member])
        here = names == name
        found[name] = (
            None if threshold is None else metrics.balanced_accuracy(good[here], support[here] >= threshold)
        )
    return found


def answer_figures(
    items: Sequence[Item], support: np.ndarray, *, threshold: float = 0.5, vetoed: np.ndarray | None = None
) -> dict[str, Any]:
    """Answers: 1 - support of the worst claim ranks them; any claim that fails makes one hallucinated."""
    answers: dict[tuple[str, str], list[int]] = {}
    for index, item in enumerate(items):
        if is_answer_set(item.set):
            answers.setdefault((item.set, item.group), []).append(index)
    if not answers:
        return {}
    tasks = np.asarray([task for task, _ in answers])
    bad = np.asarray([items[members[0]].answer_bad for members in answers.values()])
    veto = np.zeros(len(items), dtype=np.bool_) if vetoed is None else vetoed
    worst = np.asarray([1 - support[members].min() for members in answers.values()])
    flagged = np.asarray(
        [bool(((support[members] < threshold) | veto[members]).any()) for members in answers.values()]
    )
    found: dict[str, Any] = {}
    for name in ("all", *sorted(set(tasks.tolist()))):
        here = np.ones(len(bad), dtype=np.bool_) if name == "all" else tasks == name
        if not here.any():
            continue
        best = choose_threshold(worst[here], bad[here], objective="f1")
        found[name] = {
            "n": int(here.sum()),
            "hallucinated": int(bad[here].sum()),
            "auroc": metrics.auroc(bad[here], worst[here]),
            "f1": metrics.f1(bad[here], flagged[here]),
            "f1_best": None if best is None else metrics.f1(bad[here], worst[here] >= best),
            "f1_always": metrics.f1(bad[here], np.ones(int(here.sum()), dtype=np.bool_)),
        }
    return found


def means(figures: dict[str, dict[str, Any]]) -> dict[str, float | None]:
    """Means over the grounding sets."""
    rows = [row for name, row in figures.items() if not is_answer_set(name)]
    return {key: metrics.mean_defined(row[key] for row in rows) for key in KEYS}


def table(figures: dict[str, dict[str, Any]]) -> str:
    """A Markdown table, in percent."""
    lines = ["| set | n | " + " | ".join(KEYS) + " |", "|---" * (len(KEYS) + 2) + "|"]
    rows = [*figures.items(), ("**mean of grounding sets**", {"n": "", **means(figures)})]
    for name, row in rows:
        cells = ["-" if row[key] is None else f"{100 * row[key]:.1f}" for key in KEYS]
        lines.append(f"| {name} | {row['n']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
