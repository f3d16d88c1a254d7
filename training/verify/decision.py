"""The decision on top of the network: a logistic regression of five numbers.

support = sigmoid(bias + long_bias L + a entailment - b contradiction + c alignment), a, b and c at least 0:
more entailment never lowers the support and more contradiction never raises it. ``entailment`` is the log-
odds of the best premise, ``contradiction`` is ln(contradiction / neutral) of the same premise,
``alignment`` is the mean best cosine of the claim's words, and L says how much like a document the sources
are. It is fitted on held- out training claims and on the choosing half of the development sets, where each
set and class weighs the same. A richer decision ranked the sets that it was chosen on better and new sets
no better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from training.verify.measured import CHOOSING, Item
from training.verify.selection import FEATURES

from surefoot.models.monotone import Monotone

__all__ = ["INPUTS", "balanced_weights", "calibrated", "fit", "inputs_of", "support_of"]

INPUTS: Final = ("entailment", "contradiction_odds", "aligned")
SIGNS: Final = (1, -1, 1)
SHORT_WORDS: Final = 60
LONG_WORDS: Final = 250
CONTRADICTION: Final = 0.8
"""Probability from which a claim is contradicted whatever its support."""

ON_TOPIC: Final = 0.4
SURE: Final = 0.85
CALM: Final = 0.2
DOUBTED: Final = 2
"""Place of the premise that is read only where the others leave the claim in doubt."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "qa": ("attributionbench", "ragtruth.qa"),
    "summary": ("ragtruth.summary",),
    "data-to-text": ("ragtruth.data2txt",),
    "general": CHOOSING,
}
"""Sets that stand for a task; none is of the reporting half."""

Array = np.ndarray


def _best_premise(logits: Array, relevance: Sequence[float]) -> tuple[float, float]:
    """(log-odds of entailment, ln(contradiction / neutral)) of the premise that supports a claim best.

    Premises are read as the package reads them: none after one that settles the claim, and the third only
    where the others leave it in doubt.

    Args:
        logits: [premises, 3]; NaN where there is none.
        relevance: [premises].
    """
    odds, rivals, calm = [], [], False
    for place, row in enumerate(logits.astype(np.float64)):
        if np.isnan(row).any() or (place == DOUBTED and max(odds) >= 0):
            continue
        shares = np.exp(row - row.max())
        shares /= shares.sum()
        odds.append(float(row[0] - np.logaddexp(row[1], row[2])))
        rivals.append(float(row[2] - row[1]))
        if len(odds) == 1:
            calm = shares[2] < CALM or relevance[place] < ON_TOPIC
        if shares[0] >= SURE and calm:
            break
    best = int(np.argmax(odds)) if odds else 0
    return (odds[best], rivals[best]) if odds else (0.0, 0.0)


def inputs_of(items: Sequence[Item], logits: Array) -> Array:
    """Inputs [claims, 4]: those of :data:`INPUTS`, and ln(1 + words of the sources).

    Args:
        items: claims; rows of those that the package abstains on are zeros.
        logits: [claims, 3, 3].
    """
    rows = np.zeros((len(items), 4))
    for index, item in enumerate(items):
        if item.selected is not None:
            known = dict(zip(FEATURES, item.selected.features, strict=True))
            nli = _best_premise(logits[index], item.selected.relevance)
            rows[index] = (*nli, known["aligned"], known["source_words"])
    return rows


def _longness(inputs: Array) -> Array:
    low, high = math.log(SHORT_WORDS), math.log(LONG_WORDS)
    return np.clip((inputs[:, 3] - low) / (high - low), 0.0, 1.0)


def balanced_weights(sets: Sequence[str], good: Array) -> Array:
    """Weights [rows] with which every set weighs the same, and in it both classes; they sum to 1."""
    names = np.asarray(sets)
    weights = np.zeros(len(names))
    for name in np.unique(names):
        for value in (True, False):
            members = (names == name) & (good == value)
            if members.any():
                weights[members] = 1 / members.sum()
    return weights / weights.sum() if len(weights) else weights


def fit(inputs: Array, good: Array, weights: Array, *, penalty: float = 0.001) -> dict[str, Any]:
    """The decision as the manifest holds it.

    Args:
        inputs: [rows, 4].
        good: [rows], true where supported.
        weights: [rows], sum to 1.
        penalty: on squares of the three slopes, of inputs in units of their spread.
    """
    low, high = inputs[:, :3].min(axis=0), inputs[:, :3].max(axis=0)
    spread = inputs[:, :3].std(axis=0) + 1e-9
    basis = np.concatenate(
        [np.ones((len(inputs), 1)), _longness(inputs)[:, None], np.asarray(SIGNS) * inputs[:, :3] / spread],
        axis=1,
    )
    truth = good.astype(np.float64)

    def loss(theta: Array) -> tuple[float, Array]:
        z = basis @ theta
        error = weights * (1 / (1 + np.exp(-np.clip(z, -40, 40))) - truth)
        slopes = np.concatenate([[0.0, 0.0], theta[2:]])
        value = float(weights @ (np.logaddexp(0, z) - truth * z) + penalty * slopes @ slopes)
        return value, basis.T @ error + 2 * penalty * slopes

    bounds = [(None, None)] * 2 + [(0.0, None)] * 3
    theta = minimize(loss, np.full(5, 0.1), jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = theta[2:] / spread
    # A term is a line from its least to its greatest value, measured from the end that supports least.
    bias = theta[0] + sum(
        slope * (least if sign > 0 else -most)
        for slope, sign, least, most in zip(slopes, SIGNS, low, high, strict=True)
    )
    return {
        "bias": round(float(bias), 4),
        "long_bias": round(float(theta[1]), 4),
        "long": [round(math.log(SHORT_WORDS), 6), round(math.log(LONG_WORDS), 6)],
        "terms": [
            {
                "input": name,
                "sign": sign,
                "side": "any",
                "knots": [round(float(least), 4), round(float(most), 4)],
                "rise": [round(float(slope * (most - least)), 4)],
            }
            for name, sign, slope, least, most in zip(INPUTS, SIGNS, slopes, low, high, strict=True)
        ],
    }


def support_of(decision: Mapping[str, Any], inputs: Array) -> Array:
    """Support [rows], 0 to 1, computed by the package's own class."""
    model = Monotone.from_dict(dict(decision))
    names = (*INPUTS[1:], "source_words")
    values = [model.value(row[0], dict(zip(names, row[1:], strict=True))) for row in inputs.tolist()]
    return 1 / (1 + np.exp(-np.clip(np.asarray(values), -40, 40)))


def calibrated(
    held: tuple[Sequence[Item], Array], development: tuple[Sequence[Item], Array], *, false_pass: float = 0.1
) -> dict[str, Any]:
    """Fit the decision and the bands of the presets.

    Args:
        held: items and logits of held-out training claims.
        development: items and logits of development sets; only :data:`CHOOSING` and answers are used.
        false_pass: most unsupported claims that the upper end of a band may pass, and most supported ones
        that
            the lower end may reject, 0 to 1.

    Returns:
        ``calibration`` for the manifest, and ``presets`` with the errors of each.
    """
    chosen = [index for index, item in enumerate(development[0]) if item.set in CHOOSING]
    items = [*held[0], *(development[0][index] for index in chosen)]
    inputs = np.concatenate([inputs_of(*held), inputs_of(*development)[chosen]])
    asked = np.asarray([item.selected is not None for item in items])
    good = np.asarray([not item.bad for item in items])
    sets = np.asarray([item.set for item in items])
    decision = fit(inputs[asked], good[asked], balanced_weights(sets[asked].tolist(), good[asked]))
    presets = _presets(development[0], support_of(decision, inputs_of(*development)), false_pass)
    return {
        "calibration": {
            "kind": "monotone",
            # Without a preset a claim passes from 0.5; a preset is for those who want few false passes.
            "review_low": 0.4,
            "review_high": 0.5,
            "contradiction": CONTRADICTION,
            "decision": decision,
            "presets": {name: row["band"] for name, row in presets.items()},
        },
        "presets": presets,
    }


def _presets(items: Sequence[Item], support: Array, false_pass: float) -> dict[str, dict[str, Any]]:
    names = np.asarray([item.set for item in items])
    good = np.asarray([not item.bad for item in items])
    found: dict[str, dict[str, Any]] = {}
    for preset, sets in PRESETS.items():
        here = np.isin(names, sets)
        if len(np.unique(good[here])) < 2:
            continue
        weights, scores, true = balanced_weights(names[here].tolist(), good[here]), support[here], good[here]
        high = max(0.5, _quantile(scores, weights * ~true, 1 - false_pass))
        low = min(0.5, _quantile(scores, weights * true, false_pass))
        found[preset] = {
            "band": [round(low, 3), round(high, 3)],
            "false_pass": _share(scores >= high, weights * ~true),
            "false_strip": _share(scores < low, weights * true),
            "for_review": _share((scores >= low) & (scores < high), weights),
        }
    return found


def _share(said: Array, weights: Array) -> float:
    return float(weights[said].sum() / weights.sum())


def _quantile(values: Array, weights: Array, share: float) -> float:
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    return float(values[order][min(len(order) - 1, int(np.searchsorted(mass, share * mass[-1])))])
