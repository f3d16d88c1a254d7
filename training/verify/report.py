"""Figures of a checkpoint with and without the decision, beside what needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from training.verify.decision import INPUTS, Decision, inputs_of
from training.verify.figures import answer_figures, claim_figures, loso, means, table
from training.verify.measured import Item
from training.verify.parts import gains
from training.verify.parts import table as parts_table

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
    """All figures, by system; thresholds are 0.5, and the leave-one-set-out one for comparison.

    With a decision also ``parts``: what it gains on each of its parts, set by set.
    """
    found: dict[str, Any] = {}
    systems = supports(items, logits, decision)
    for name, support in systems.items():
        sets = claim_figures(items, support)
        left_out = loso(items, np.where([item.selected is None for item in items], 0.0, support))
        known = [value for value in left_out.values() if value is not None]
        found[name] = {
            "sets": sets,
            "mean": {**means(sets), "balanced_accuracy_loso": sum(known) / len(known) if known else None},
            "loso": left_out,
            "answers": answer_figures(items, support),
        }
    if decision is not None:
        aligned = inputs_of(items, logits)[:, INPUTS.index("aligned")]
        parts = {
            "network": systems["network"],
            "alignment": aligned,
            "share of unseen words": systems["seen words"],
        }
        found["parts"] = gains(items, systems["decision"], parts)
    return found


def shown(found: Mapping[str, Any]) -> str:
    """Tables for reading."""
    lines: list[str] = []
    for name, figures in found.items():
        if name == "parts":
            lines += ["", "the decision and its parts, AUROC", parts_table(figures)]
            continue
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
