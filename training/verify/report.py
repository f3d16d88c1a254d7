"""Figures of a checkpoint with and without the decision, beside what needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from training.verify.decision import INPUTS, Decision, inputs_of
from training.verify.figures import answer_figures, claim_figures, loso, means, table
from training.verify.measured import Item

__all__ = ["evaluated", "shown"]


def supports(
    items: Sequence[Item], logits: np.ndarray, decision: Mapping[str, Any] | None
) -> dict[str, np.ndarray]:
    """Support [claims] by system: share of seen words, the network alone, and the decision."""
    inputs = inputs_of(items, logits)
    odds = inputs[:, INPUTS.index("entailment")]
    found = {
        "seen words": 1 - inputs[:, INPUTS.index("unseen_all")],
        "network": 1 / (1 + np.exp(-odds)),
    }
    if decision is not None:
        platt = decision["platt"]
        found["network, calibrated"] = 1 / (1 + np.exp(-(platt["a"] * odds + platt["b"])))
        found["decision"] = Decision.from_json(decision["decision"]).support(inputs)
    return found


def evaluated(
    items: Sequence[Item], logits: np.ndarray, decision: Mapping[str, Any] | None
) -> dict[str, Any]:
    """All figures, by system; thresholds are 0.5, and the leave-one-set-out one for comparison."""
    found: dict[str, Any] = {}
    for name, support in supports(items, logits, decision).items():
        sets = claim_figures(items, support)
        left_out = loso(items, np.where([item.selected is None for item in items], 0.0, support))
        known = [value for value in left_out.values() if value is not None]
        found[name] = {
            "sets": sets,
            "mean": {**means(sets), "balanced_accuracy_loso": sum(known) / len(known) if known else None},
            "loso": left_out,
            "answers": answer_figures(items, support),
        }
    return found


def shown(found: Mapping[str, Any]) -> str:
    """Tables for reading."""
    lines: list[str] = []
    for name, figures in found.items():
        mean = figures["mean"]
        lines += ["", f"{name}", table(figures["sets"])]
        if mean["balanced_accuracy_loso"] is not None:
            lines.append(f"threshold from the other sets: {100 * mean['balanced_accuracy_loso']:.1f}")
        for task, row in figures["answers"].items():
            cells = ", ".join(
                f"{key} {100 * row[key]:.1f}"
                for key in ("auroc", "f1", "f1_best", "f1_always")
                if row[key] is not None
            )
            lines.append(f"answers {task}: n {row['n']}, {cells}")
    return "\n".join(lines)
