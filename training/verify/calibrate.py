"""Fit the decision on held-out training data: choose inputs, fit, calibrate, set thresholds.

A candidate is judged by leaving one set out: it is fitted on the other sets and asked about the one left
out, since it will be asked about sets that nobody has seen. Development sets, where they are given, set four
numbers and the bands of the presets: how far the network is trusted beside the other inputs, scale, and a
shift each for short and long sources. Held-out documents of sets that the network was trained on flatter it,
and claims made by editing are neither false as often nor as hard as those of an answer. What the four numbers
are worth on a set that had no say in them is measured by leaving out one set at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from training.verify.decision import INPUTS, NLI, Decision, balanced_weights, fit, inputs_of, longness
from training.verify.figures import is_answer_set
from training.verify.measured import Item

from surefoot import metrics
from surefoot.metrics.calibration import choose_threshold, fit_platt
from surefoot.models.monotone import INPUTS as SHIPPED

__all__ = ["CANDIDATES", "PRESETS", "calibrated", "can_ship", "cross_fitted", "presets", "settle"]

CONTRADICTION: Final = 0.8
"""Probability from which a claim is contradicted whatever its support. The decision weighs contradiction too:
no claim of the development sets has a support of 0.5 and a contradiction of 0.8; of the four with 0.7, two
were true."""

TRUST: Final = (1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1)
"""Factors on the weight of the network that are tried on development sets."""

_SHARES: Final = ("unseen_all", "unseen_near", "unseen_read", "overlap", "bigrams")
_VECTORS: Final = ("cosine", "aligned", "aligned_low")
_FACTS: Final = ("figures_missing", "names_missing", "hard_mismatch", "name_mismatch", "negation_differs")

CANDIDATES: Final[Mapping[str, dict[str, Any]]] = {
    "nli, best premise": {"use": ("entailment",)},
    "nli": {"use": NLI},
    "features": {"use": (*_SHARES, *_VECTORS, *_FACTS)},
    "aligned": {"use": ("aligned",)},
    "unseen": {"use": ("unseen_all",)},
    "nli + unseen": {"use": (*NLI, "unseen_all")},
    "nli + aligned": {"use": (*NLI, "aligned", "aligned_low")},
    "nli + alignment + unseen, gated": {
        "use": ("entailment", "aligned", "unseen_near"),
        "pieces": 1,
        "penalty": 0.001,
        "gated": True,
    },
    "nli + alignment, gated": {
        "use": ("entailment", "aligned"),
        "pieces": 1,
        "penalty": 0.001,
        "gated": True,
    },
    "nli + unseen, gated": {
        "use": ("entailment", "unseen_near"),
        "pieces": 1,
        "penalty": 0.001,
        "gated": True,
    },
    "nli + contradiction + alignment": {
        "use": ("entailment", "contradiction_odds", "aligned"),
        "pieces": 1,
        "penalty": 0.001,
        "long": True,
    },
    "nli + contradiction + alignment, gated": {
        "use": ("entailment", "contradiction_odds", "aligned"),
        "pieces": 1,
        "penalty": 0.001,
        "gated": True,
    },
    "nli + contradiction + alignment, two pieces, gated": {
        "use": ("entailment", "contradiction_odds", "aligned"),
        "pieces": 2,
        "penalty": 0.001,
        "gated": True,
    },
    "nli + contradiction, gated": {
        "use": ("entailment", "contradiction_odds"),
        "pieces": 1,
        "penalty": 0.001,
        "gated": True,
    },
    "nli, gated": {"use": ("entailment",), "pieces": 1, "penalty": 0.001, "gated": True},
    "nli + alignment + unseen": {"use": ("entailment", "aligned", "unseen_near"), "pieces": 2},
    "nli + alignment + unseen + overlap, gated": {
        "use": ("entailment", "aligned", "unseen_near", "overlap"),
        "pieces": 1,
        "penalty": 0.001,
        "gated": True,
    },
    "nli + vectors + facts": {"use": (*NLI, *_VECTORS, *_FACTS)},
    "all": {"use": (*NLI, *_SHARES, *_VECTORS, *_FACTS)},
    "all, stiff": {"use": (*NLI, *_SHARES, *_VECTORS, *_FACTS), "penalty": 0.1},
    "all, two pieces": {"use": (*NLI, *_SHARES, *_VECTORS, *_FACTS), "pieces": 2},
    "all, with product": {
        "use": (*NLI, *_SHARES, *_VECTORS, *_FACTS),
        "products": (("entailment", "aligned"), ("entailment", "unseen_near")),
    },
}
"""What was compared; the figures are in the card."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "qa": ("attributionbench", "healthver", "ragtruth.qa"),
    "summary": ("summedits", "ragtruth.summary"),
    "data-to-text": ("ragtruth.data2txt",),
    "general": (),
}
"""Development sets that stand for a task; of none, all grounding sets do."""


def can_ship(options: Mapping[str, Any]) -> bool:
    """Whether the package can evaluate a decision of these inputs."""
    return (
        "entailment" in options["use"] and set(options["use"]) <= set(SHIPPED) and "products" not in options
    )


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
    drawn = np.random.default_rng(0).choice(len(items), size=20_000, p=weights)
    platt = fit_platt(values[drawn], good[drawn])
    if platt is None or platt.a >= 0:
        return decision
    return replace(decision, scale=-platt.a, shift=-platt.b)


def carried(decision: Decision, items: Sequence[Item], inputs: np.ndarray) -> Decision:
    """The decision with trust, scale and shifts from development sets; each set and class weighs the same."""
    names, good = _arrays(items)
    tried = [_trusting(decision, factor) for factor in TRUST]
    best = max(tried, key=lambda one: _mean_auroc(names, good, one.value(inputs)))
    weights = balanced_weights(names.tolist(), good)
    basis = np.stack([best.value(inputs), np.ones(len(items)), longness(inputs)], axis=1)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        z = basis @ theta
        error = weights * (1 / (1 + np.exp(-np.clip(z, -40, 40))) - good)
        return float(weights @ (np.logaddexp(0, z) - good * z)), basis.T @ error

    bounds = [(1e-3, None), (None, None), (None, None)]
    found = minimize(loss, np.asarray([1.0, 0.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds)
    scale, shift, long_shift = (float(value) for value in found.x)
    return replace(
        best,
        scale=best.scale * scale,
        shift=best.shift * scale + shift,
        long_bias=best.long_bias + long_shift / (best.scale * scale),
    )


def left_out(decision: Decision, items: Sequence[Item], inputs: np.ndarray) -> dict[str, Any] | None:
    """Figures of each development set with numbers that :func:`carried` takes from the others.

    ``None`` of a single set. Sets whose names begin alike (``wice_...``) share claims and are left out
    together.
    """
    names, good = _arrays(items)
    families = np.asarray([name.split("_")[0] for name in names.tolist()])
    if len(np.unique(families)) < 2:
        return None
    support = np.zeros(len(items))
    for family in sorted(set(families.tolist())):
        there = families != family
        others = carried(decision, [items[row] for row in np.flatnonzero(there)], inputs[there])
        support[~there] = others.support(inputs[~there])
    found: dict[str, Any] = {
        name: {
            "auroc": metrics.auroc(good[names == name], support[names == name]),
            "balanced_accuracy": metrics.balanced_accuracy(
                good[names == name], support[names == name] >= 0.5
            ),
            "ece": metrics.expected_calibration_error(good[names == name], support[names == name]),
        }
        for name in sorted(set(names.tolist()))
    }
    found["mean"] = {
        key: metrics.mean_defined(row[key] for row in found.values())
        for key in ("auroc", "balanced_accuracy", "ece")
    }
    weights = balanced_weights(names.tolist(), good)
    drawn = np.random.default_rng(0).choice(len(items), size=20_000, p=weights)
    found["pooled_ece"] = metrics.expected_calibration_error(good[drawn], support[drawn])
    return found


def _trusting(decision: Decision, factor: float) -> Decision:
    """The same with ``factor`` times the weight of the network."""
    ramps = tuple(
        (name, knots, tuple(factor * slope for slope in slopes) if name in NLI else slopes, side)
        for name, knots, slopes, side in decision.ramps
    )
    return replace(decision, ramps=ramps)


def _mean_auroc(names: np.ndarray, good: np.ndarray, values: np.ndarray) -> float:
    found = [
        metrics.auroc(good[names == name], values[names == name]) for name in sorted(set(names.tolist()))
    ]
    return metrics.mean_defined(found) or 0.0


def presets(
    items: Sequence[Item], support: np.ndarray, *, false_pass: float = 0.1
) -> dict[str, dict[str, Any]]:
    """The band of each task, ``[review_low, review_high]``, and what it does.

    At or above ``review_high`` at most ``false_pass`` of the unsupported claims are passed; below
    ``review_low`` at most as many of the supported ones are rejected. The middle, 0.5, is always inside.
    """
    names, good = _arrays(items)
    found: dict[str, dict[str, Any]] = {}
    for preset, sets in PRESETS.items():
        here = np.isin(names, sets) if sets else np.asarray([not is_answer_set(name) for name in names])
        if not here.any() or good[here].all() or not good[here].any():
            continue
        weights = balanced_weights(names[here].tolist(), good[here])
        best = choose_threshold(support[here], good[here], weights=np.maximum(weights, 1e-12))
        high = _quantile(support[here], weights * ~good[here], 1 - false_pass)
        low = _quantile(support[here], weights * good[here], false_pass)
        band = [round(min(low, 0.5), 3), round(max(high, 0.5), 3)]
        found[preset] = {
            "band": band,
            "best": best,
            "false_pass": _share(support[here] >= band[1], weights * ~good[here]),
            "false_strip": _share(support[here] < band[0], weights * good[here]),
            "for_review": _share((support[here] >= band[0]) & (support[here] < band[1]), weights),
        }
    return found


def _share(said: np.ndarray, weights: np.ndarray) -> float:
    return float(weights[said].sum() / weights.sum())


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    return float(values[order][min(len(order) - 1, int(np.searchsorted(mass, share * mass[-1])))])


def calibrated(
    items: Sequence[Item],
    logits: np.ndarray,
    *,
    candidate: str | None = None,
    false_pass: float = 0.1,
    development: tuple[Sequence[Item], np.ndarray] | None = None,
) -> dict[str, Any]:
    """Compare the candidates, fit one, and say everything that the manifest needs.

    Args:
        items, logits: claims of held-out training documents.
        candidate: the decision to take; of those that can ship, the one that ranks best by default.
        false_pass: most unsupported claims that the upper thresholds may pass, 0 to 1.
        development: items and logits of development sets, see the module.

    Returns:
        ``calibration`` (for the manifest), ``decision`` (the same terms), ``platt`` (of the network alone),
        ``presets``, ``held`` (figures of every candidate, each on sets it had not seen) and ``ece``.
    """
    items, inputs = _read(items, logits)
    compared = {name: cross_fitted(items, inputs, options) for name, options in CANDIDATES.items()}
    if candidate is None:
        usable = [name for name, options in CANDIDATES.items() if can_ship(options)]
        candidate = max(usable, key=lambda name: compared[name][1]["mean"]["auroc"] or 0.0)
    grounding = judged = None
    if development is not None:
        judged = _read(*development)
        rows = [index for index, item in enumerate(judged[0]) if not is_answer_set(item.set)]
        grounding = ([judged[0][row] for row in rows], judged[1][rows])
    decision = settle(items, inputs, CANDIDATES[candidate])
    kept_out = None
    if grounding is not None:
        kept_out = left_out(decision, *grounding)
        decision = carried(decision, *grounding)
    if judged is None or grounding is None:
        values = compared[candidate][0] * decision.scale + decision.shift
        judged, support = (items, inputs), 1 / (1 + np.exp(-values))
        grounding = judged
    else:
        support = decision.support(judged[1])
    names, good = _arrays(grounding[0])
    weights = balanced_weights(names.tolist(), good)
    drawn = np.random.default_rng(0).choice(len(names), size=20_000, p=weights)
    platt = fit_platt(grounding[1][drawn, INPUTS.index("entailment")], good[drawn])
    if platt is None:
        raise ValueError("the claims are all of one class")
    bands = presets(judged[0], support, false_pass=false_pass)
    names, good = _arrays(judged[0])
    terms = decision.to_json()
    return {
        "candidate": candidate,
        "decision": terms,
        "platt": {"a": round(-platt.a, 4), "b": round(-platt.b, 4)},
        "calibration": {
            "kind": "monotone",
            # Without a preset the better half passes; a preset is for those who want few false passes.
            "review_low": 0.4,
            "review_high": 0.5,
            "contradiction": CONTRADICTION,
            "decision": {
                "bias": terms["bias"],
                "long_bias": terms["long_bias"],
                "long": [round(float(np.log(words)), 6) for words in terms["long"]],
                "terms": terms["terms"],
            },
            "presets": {name: row["band"] for name, row in bands.items()},
        },
        "presets": bands,
        "development_left_out": kept_out,
        "held": {name: figures for name, (_, figures) in compared.items()},
        "ece": {
            name: metrics.expected_calibration_error(good[names == name], support[names == name])
            for name in sorted(set(names.tolist()))
        },
        "claims": len(items),
    }


def _read(items: Sequence[Item], logits: np.ndarray) -> tuple[list[Item], np.ndarray]:
    """The items that the package would ask the model about, with their inputs."""
    kept = [index for index, item in enumerate(items) if item.selected is not None]
    return [items[index] for index in kept], inputs_of(items, logits)[kept]
