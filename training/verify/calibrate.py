"""Fit the decision on held-out training data: choose inputs, fit, calibrate, set thresholds.

Choices are made by leaving one set out: a decision is fitted on the other sets and judged on the one left
out, since it will be asked about sets that nobody has seen. Development sets take no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from training.verify.decision import INPUTS, Decision, balanced_weights, fit, inputs_of
from training.verify.measured import Item

from surefoot import metrics
from surefoot.metrics.calibration import choose_threshold, fit_platt

__all__ = ["CANDIDATES", "PRESETS", "calibrated", "cross_fitted", "presets", "settle"]

_NLI: Final = ("entailment", "entailment_joined", "entailment_least", "contradiction")
_SHARES: Final = ("unseen_all", "unseen_near", "unseen_read", "overlap", "bigrams")
_VECTORS: Final = ("cosine", "aligned", "aligned_low")
_FACTS: Final = ("figures_missing", "names_missing", "hard_mismatch", "name_mismatch", "negation_differs")

CANDIDATES: Final[Mapping[str, dict[str, Any]]] = {
    "nli, best premise": {"use": ("entailment",)},
    "nli": {"use": _NLI},
    "features": {"use": (*_SHARES, *_VECTORS, *_FACTS)},
    "aligned": {"use": ("aligned",)},
    "unseen": {"use": ("unseen_all",)},
    "nli + unseen": {"use": (*_NLI, "unseen_all")},
    "nli + aligned": {"use": (*_NLI, "aligned", "aligned_low")},
    "nli + alignment + unseen, gated": {
        "use": ("entailment", "aligned", "unseen_near"),
        "pieces": 1,
        "penalty": 0.001,
        "gated": True,
    },
    "nli + vectors + facts": {"use": (*_NLI, *_VECTORS, *_FACTS)},
    "all": {"use": (*_NLI, *_SHARES, *_VECTORS, *_FACTS)},
    "all, stiff": {"use": (*_NLI, *_SHARES, *_VECTORS, *_FACTS), "penalty": 0.1},
    "all, two pieces": {"use": (*_NLI, *_SHARES, *_VECTORS, *_FACTS), "pieces": 2},
    "all, with product": {
        "use": (*_NLI, *_SHARES, *_VECTORS, *_FACTS),
        "products": (("entailment", "aligned"), ("entailment", "unseen_near")),
    },
}
"""What was compared; the figures are in the card."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "qa": ("clapnq_answers", "fever_nli", "te_new_protocols", "scifact_abstract"),
    "summary": ("defacto", "halueval_summ", "cg2c"),
    "general": (),
}
"""Sets that stand for a task. There is none for data-to-text: it takes the general thresholds."""


def _arrays(items: Sequence[Item]) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray([item.set for item in items]), np.asarray([not item.bad for item in items])


def cross_fitted(
    items: Sequence[Item], inputs: np.ndarray, options: Mapping[str, Any]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Values [rows] of decisions that never saw the row's set, and how well they do on each set."""
    names, good = _arrays(items)
    values = np.zeros(len(items))
    found: dict[str, Any] = {}
    for name in sorted(set(names.tolist())):
        here, there = names == name, names != name
        weights = balanced_weights(names[there].tolist(), good[there])
        decision = fit(inputs[there], good[there], weights, **options)
        values[here] = decision.value(inputs[here])
        found[name] = {
            "auroc": metrics.auroc(good[here], values[here]),
            "balanced_accuracy": metrics.balanced_accuracy(good[here], values[here] >= 0),
        }
    for key in ("auroc", "balanced_accuracy"):
        found.setdefault("mean", {})[key] = metrics.mean_defined(
            row[key] for name, row in found.items() if name != "mean"
        )
    return values, found


def settle(items: Sequence[Item], inputs: np.ndarray, options: Mapping[str, Any]) -> Decision:
    """Fit on everything, with scale and shift from decisions that had not seen the set (Platt 1999)."""
    names, good = _arrays(items)
    weights = balanced_weights(names.tolist(), good)
    decision = fit(inputs, good, weights, **options)
    values, _ = cross_fitted(items, inputs, options)
    # Every set and class weighs the same: repeat rows instead of weighting, which fit_platt does not know.
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(items), size=20_000, p=weights)
    platt = fit_platt(values[drawn], good[drawn])
    if platt is None or platt.a >= 0:
        return decision
    return replace(decision, scale=-platt.a, shift=-platt.b)


def presets(
    items: Sequence[Item], support: np.ndarray, *, false_pass: float = 0.1
) -> dict[str, dict[str, float | None]]:
    """Thresholds per task, from support that was not fitted on the set.

    ``decision`` has the best balanced accuracy; ``review_high`` is the lowest threshold above it with at most
    ``false_pass`` unsupported claims passed; ``review_low`` strips at most that share of supported ones.
    """
    names, good = _arrays(items)
    found: dict[str, dict[str, float | None]] = {}
    for preset, sets in PRESETS.items():
        here = np.isin(names, sets) if sets else np.ones(len(names), dtype=np.bool_)
        if not here.any() or good[here].all() or not good[here].any():
            continue
        weights = balanced_weights(names[here].tolist(), good[here])
        middle = choose_threshold(support[here], good[here], weights=np.maximum(weights, 1e-12))
        high = _quantile(support[here], weights * ~good[here], 1 - false_pass)
        low = _quantile(support[here], weights * good[here], false_pass)
        found[preset] = {"decision": middle, "review_high": high, "review_low": low}
    return found


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    return float(values[order][min(len(order) - 1, int(np.searchsorted(mass, share * mass[-1])))])


def calibrated(
    items: Sequence[Item], logits: np.ndarray, *, candidate: str | None = None, false_pass: float = 0.1
) -> dict[str, Any]:
    """Compare the candidates, fit one, and say everything that the manifest needs.

    Returns:
        ``decision`` (terms), ``platt`` (of the network alone), ``calibration`` (as the manifest has it now),
        ``presets``, ``held`` (figures of every candidate, each on sets it had not seen) and ``ece``.
    """
    kept = [index for index, item in enumerate(items) if item.selected is not None]
    items, inputs = [items[index] for index in kept], inputs_of(items, logits)[kept]
    names, good = _arrays(items)
    compared = {name: cross_fitted(items, inputs, options) for name, options in CANDIDATES.items()}
    if candidate is None:
        usable = [name for name in CANDIDATES if "entailment" in CANDIDATES[name]["use"]]
        candidate = max(usable, key=lambda name: compared[name][1]["mean"]["auroc"] or 0.0)
    decision = settle(items, inputs, CANDIDATES[candidate])
    values = compared[candidate][0] * decision.scale + decision.shift
    support = 1 / (1 + np.exp(-values))
    weights = balanced_weights(names.tolist(), good)
    drawn = np.random.default_rng(0).choice(len(items), size=20_000, p=weights)
    odds = inputs[:, INPUTS.index("entailment")]
    platt = fit_platt(odds[drawn], good[drawn])
    if platt is None:
        raise ValueError("the held-out claims are all of one class")
    found = presets(items, support, false_pass=false_pass)
    general = found.get("general", {})
    low = min(general.get("review_low") or 0.4, 0.5)
    high = max(general.get("review_high") or 0.5, 0.5)
    return {
        "candidate": candidate,
        "decision": decision.to_json(),
        "platt": {"a": round(-platt.a, 4), "b": round(-platt.b, 4)},
        "calibration": {
            "kind": "platt",
            "a": round(-platt.a, 4),
            "b": round(-platt.b, 4),
            "review_low": round(low, 3),
            "review_high": round(high, 3),
            "contradiction": 0.6,
        },
        "presets": {
            name: {key: None if value is None else round(value, 4) for key, value in row.items()}
            for name, row in found.items()
        },
        "held": {name: figures for name, (_, figures) in compared.items()},
        "ece": {
            name: metrics.expected_calibration_error(good[names == name], support[names == name])
            for name in sorted(set(names.tolist()))
        },
        "claims": len(items),
    }
