"""Figures of a checkpoint: the network alone and the decision, beside the share of unseen words, by half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from training.verify.decision import inputs_of, support_of
from training.verify.measured import CHOOSING, REPORTING, Item, is_answer_set
from training.verify.selection import FEATURES

from surefoot import metrics
from surefoot.metrics.resampling import estimate, group_weights, mean_of, weighted_auroc, weighted_rates

__all__ = ["evaluated", "shown"]

HALVES: Final = {"choosing half": CHOOSING, "reporting half": REPORTING}
KEYS: Final = ("auroc", "balanced_accuracy", "false_pass", "false_strip")


def evaluated(
    items: Sequence[Item], logits: np.ndarray, decision: Mapping[str, Any] | None, *, seed: int = 0
) -> dict[str, Any]:
    """Figures by system: ``sets`` and the means of both ``halves`` with 95% intervals, and ``answers``.

    Thresholds are 0.5 of the probability, and a half of the words. A claim that the package abstains on
    counts as not supported. Whole sources are resampled, the same for every system.
    """
    inputs = inputs_of(items, logits)
    unseen = FEATURES.index("unseen")
    systems = {
        "seen words": np.asarray(
            [1 - item.selected.features[unseen] if item.selected else 0.0 for item in items]
        ),
        "network": 1 / (1 + np.exp(-inputs[:, 0])),
    }
    if decision is not None:
        systems["decision"] = support_of(decision, inputs)
    asked = np.asarray([item.selected is not None for item in items])
    found = {}
    for name, support in systems.items():
        score = np.where(asked, support, 0.0)
        arrays = _by_set(items, score, seed)
        found[name] = {
            "sets": {key: _row(row) for key, row in arrays.items()},
            "halves": {
                half: _row(
                    {key: mean_of([arrays[one][key] for one in sets if one in arrays]) for key in KEYS}
                )
                for half, sets in HALVES.items()
                if any(one in arrays for one in sets)
            },
            "answers": _answers(items, score),
        }
    return found


def _by_set(items: Sequence[Item], score: np.ndarray, seed: int) -> dict[str, dict[str, np.ndarray]]:
    found = {}
    for name in sorted({item.set for item in items if not is_answer_set(item.set)}):
        here = [index for index, item in enumerate(items) if item.set == name]
        weights = group_weights([items[index].group for index in here], seed=seed, name=name)
        good = np.asarray([not items[index].bad for index in here])
        rates = weighted_rates(weights, good, score[here] >= 0.5)
        found[name] = {
            "auroc": weighted_auroc(weights, good, score[here]),
            **{key: rates[key] for key in KEYS[1:]},
        }
    return found


def _row(figures: Mapping[str, np.ndarray]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, figure in figures.items():
        row[key], row[f"{key}_ci"] = estimate(figure)
    return row


def _answers(items: Sequence[Item], score: np.ndarray) -> dict[str, Any]:
    """Answers: 1 - support of the worst claim ranks them; any claim that fails makes one hallucinated."""
    members: dict[tuple[str, str], list[int]] = {}
    for index, item in enumerate(items):
        if is_answer_set(item.set):
            members.setdefault((item.set, item.group), []).append(index)
    bad = np.asarray([items[rows[0]].answer_bad for rows in members.values()], dtype=np.bool_)
    worst = np.asarray([score[rows].min() for rows in members.values()])
    tasks = np.asarray([task for task, _ in members])
    found = {}
    for name in ("all", *sorted(set(tasks.tolist()))) if members else ():
        here = tasks == name if name != "all" else np.ones(len(bad), dtype=np.bool_)
        found[name] = {
            "n": int(here.sum()),
            "auroc": metrics.auroc(bad[here], 1 - worst[here]),
            "f1": metrics.f1(bad[here], worst[here] < 0.5),
            "f1_always": metrics.f1(bad[here], np.ones(int(here.sum()), dtype=np.bool_)),
        }
    return found


def shown(found: Mapping[str, Any]) -> str:
    """Tables for reading, in percent."""
    lines: list[str] = []
    for name, figures in found.items():
        lines += ["", name, "| set | " + " | ".join(KEYS) + " |", "|---" * (len(KEYS) + 1) + "|"]
        for key, row in {**figures["sets"], **figures["halves"]}.items():
            lines.append(f"| {key} | " + " | ".join(_cell(row[k], row[f"{k}_ci"]) for k in KEYS) + " |")
        for task, row in figures["answers"].items():
            cells = (f"{k} {100 * row[k]:.1f}" for k in ("auroc", "f1", "f1_always") if row[k] is not None)
            lines.append(f"answers, {task}: n {row['n']}, {', '.join(cells)}")
    return "\n".join(lines)


def _cell(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f}" + (f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else "")
