"""The decision on top of the network: a small additive model that is monotone by construction.

support = sigmoid(b + sum over terms). A term is a piecewise linear function of one input with slopes of one
sign, or of the product of two such functions; all coefficients are 0 or more, so that more entailment never
lowers the support and more unseen words never raise it. It is fitted on held-out training data, each
set and class weighing the same, and is a few numbers in JSON that need no library to be evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from training.verify.measured import Item
from training.verify.selection import FEATURES

__all__ = ["INPUTS", "NLI", "SIGNS", "Decision", "fit", "inputs_of", "longness", "nli_of"]

ON_TOPIC: Final = 0.4
SURE: Final = 0.85
CALM: Final = 0.2
DOUBTED: Final = 2
"""Place of the premise that is read only where the others leave the claim in doubt."""
SHORT_WORDS: Final = 60
LONG_WORDS: Final = 250

NLI: Final = (
    "entailment",
    "entailment_joined",
    "entailment_least",
    "contradiction",
    "contradiction_odds",
)
INPUTS: Final = (*NLI, *FEATURES)
"""Inputs in the order of the array."""

SIGNS: Final[Mapping[str, int]] = {
    "entailment": 1,  # log-odds, best premise
    "entailment_joined": 1,
    "entailment_least": 1,
    "contradiction": -1,  # probability, worst premise on topic
    "contradiction_odds": -1,  # ln(contradiction / neutral), best premise
    "unseen_all": -1,
    "unseen_near": -1,
    "unseen_read": -1,
    "overlap": 1,
    "cosine": 1,
    "aligned": 1,
    "aligned_low": 1,
    "bigrams": 1,
    "figures_missing": -1,
    "names_missing": -1,
    "hard_mismatch": -1,
    "name_mismatch": -1,
    "agreed": 1,
    "negation_differs": -1,
    "claim_words": -1,
}
"""The direction in which an input may move the support. Inputs that are not named here are not used."""

Array = np.ndarray


def nli_of(logits: Array, relevance: Sequence[Sequence[float]]) -> Array:
    """The NLI inputs [claims, 5] of logits [claims, 2 or 3, 3], as the package would read the premises.

    Where the first premise settles the claim, no other is read; the third is read only where the others leave
    it in doubt.
    """
    rows = np.zeros((len(logits), len(NLI)))
    for index, (every, near) in enumerate(zip(logits.astype(np.float64), relevance, strict=True)):
        odds: list[float] = []
        against: list[float] = []
        rivals: list[float] = []
        for place, row in enumerate(every):
            if np.isnan(row).any() or (place == DOUBTED and max(odds) >= 0):
                continue
            shares = np.exp(row - row.max())
            shares /= shares.sum()
            odds.append(float(row[0] - np.logaddexp(row[1], row[2])))
            against.append(float(shares[2]) if near[place] >= ON_TOPIC else 0.0)
            rivals.append(float(row[2] - row[1]))
            if shares[0] >= SURE and against[0] < CALM:
                break
        if odds:
            rows[index] = max(odds), odds[0], min(odds), max(against), rivals[int(np.argmax(odds))]
    return rows


def inputs_of(items: Sequence[Item], logits: Array) -> Array:
    """All inputs [claims, inputs]; rows of claims that the package abstains on are zeros."""
    near = [item.selected.relevance if item.selected else () for item in items]
    empty = (0.0,) * len(FEATURES)
    features = np.asarray([item.selected.features if item.selected else empty for item in items])
    return np.concatenate([nli_of(logits, near), features], axis=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """A fitted decision.

    Attributes:
        ramps: (input, knots, coefficients, side): the function rises by a coefficient from each knot to the
            next, times the sign of the input. A side other than "any" counts by :func:`longness`.
        products: (input, knots, input, knots, coefficients [first, second]) in the same manner.
        bias, long_bias: added; the second times :func:`longness`.
        scale, shift: of the last calibration: support = sigmoid(scale * value + shift).
    """

    ramps: tuple[tuple[str, tuple[float, ...], tuple[float, ...], str], ...]
    products: tuple[tuple[str, tuple[float, ...], str, tuple[float, ...], tuple[tuple[float, ...], ...]], ...]
    bias: float
    long_bias: float = 0.0
    scale: float = 1.0
    shift: float = 0.0

    def value(self, inputs: Array) -> Array:
        """The sum before the sigmoid [rows], of inputs [rows, inputs]."""
        total = self.bias + self.long_bias * longness(inputs)
        for name, knots, slopes, side in self.ramps:
            total += _share(inputs, side) * (_ramps(inputs, name, knots) @ np.asarray(slopes))
        for one, first, two, second, slopes in self.products:
            left, right = _ramps(inputs, one, first), _ramps(inputs, two, second)
            total += np.einsum("ni,nj,ij->n", left, right, np.asarray(slopes))
        return self.scale * total + self.shift

    def support(self, inputs: Array) -> Array:
        """Support [rows], 0 to 1."""
        return 1 / (1 + np.exp(-np.clip(self.value(inputs), -40, 40)))

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, rounded to what matters; terms of no weight are left out."""
        return {
            "kind": "monotone",
            "bias": round(self.scale * self.bias + self.shift, 4),
            "long_bias": round(self.scale * self.long_bias, 4),
            "long": [SHORT_WORDS, LONG_WORDS],
            "terms": [
                {
                    "input": name,
                    "sign": SIGNS[name],
                    "side": side,
                    "knots": [round(knot, 4) for knot in knots],
                    "rise": [round(self.scale * slope, 4) for slope in slopes],
                }
                for name, knots, slopes, side in self.ramps
                if max(slopes) * self.scale > 5e-4
            ],
            "products": [
                {
                    "inputs": [one, two],
                    "signs": [SIGNS[one], SIGNS[two]],
                    "knots": [[round(knot, 4) for knot in first], [round(knot, 4) for knot in second]],
                    "rise": [[round(self.scale * slope, 4) for slope in row] for row in slopes],
                }
                for one, first, two, second, slopes in self.products
                if max(max(row) for row in slopes) * self.scale > 5e-4
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Decision:
        """Read what :meth:`to_json` wrote."""
        ramps = tuple(
            (term["input"], tuple(term["knots"]), tuple(term["rise"]), term["side"]) for term in data["terms"]
        )
        products = tuple(
            (
                term["inputs"][0],
                tuple(term["knots"][0]),
                term["inputs"][1],
                tuple(term["knots"][1]),
                tuple(tuple(row) for row in term["rise"]),
            )
            for term in data["products"]
        )
        return cls(ramps, products, data["bias"], data["long_bias"])


def longness(inputs: Array) -> Array:
    """How much like a document the sources are [rows]: 0 below 60 words, 1 above 250.

    In a long source every word of a true claim can be found; beside one sentence it has words of its own.
    """
    words = inputs[:, INPUTS.index("source_words")]
    low, high = math.log(SHORT_WORDS), math.log(LONG_WORDS)
    return np.clip((words - low) / (high - low), 0.0, 1.0)


def _share(inputs: Array, side: str) -> Array:
    if side == "any":
        return np.ones(len(inputs))
    return longness(inputs) if side == "long" else 1.0 - longness(inputs)


def _ramps(inputs: Array, name: str, knots: Sequence[float]) -> Array:
    """Basis [rows, knots - 1]: each rises from 0 to 1 between two knots, in the direction of support."""
    x = inputs[:, INPUTS.index(name)]
    low, high = np.asarray(knots[:-1]), np.asarray(knots[1:])
    rising = np.clip((x[:, None] - low) / (high - low), 0.0, 1.0)
    return rising if SIGNS[name] > 0 else 1.0 - rising


def knots_of(values: Array, count: int) -> tuple[float, ...]:
    """Quantiles [up to ``count`` + 1] of an input, two at least; one piece spans them all."""
    low, high = (0.02, 0.98) if count > 1 else (0.0, 1.0)
    found = np.unique(np.quantile(values, np.linspace(low, high, count + 1)).round(4))
    if len(found) < 2:
        found = np.unique(np.asarray([values.min(), values.max()]))
    if len(found) < 2:
        found = np.asarray([found[0], found[0] + 1.0])
    return tuple(float(value) for value in found)


def fit(
    inputs: Array,
    labels: Array,
    weights: Array,
    *,
    use: Sequence[str],
    products: Sequence[tuple[str, str]] = (),
    pieces: int = 4,
    penalty: float = 0.02,
    gated: bool = False,
    long: bool = False,
) -> Decision:
    """Fit a decision by penalised maximum likelihood, coefficients bounded below by 0.

    Args:
        inputs: [rows, inputs].
        labels: [rows], true where supported.
        weights: [rows], sum to 1.
        use: inputs with a term of their own.
        products: pairs of inputs with a joint term.
        pieces: of each function.
        penalty: on squares of coefficients.
        gated: separate functions for short and for long sources.
        long: another bias for long sources; ``gated`` implies it.
    """
    knots = {name: knots_of(inputs[:, INPUTS.index(name)], pieces) for name in (*use, *sum(products, ()))}
    sides = ("short", "long") if gated else ("any",)
    parts = [longness(inputs)[:, None]] + [
        _share(inputs, side)[:, None] * _ramps(inputs, name, knots[name]) for name in use for side in sides
    ]
    coarse = {name: knots_of(inputs[:, INPUTS.index(name)], 3) for name in sum(products, ())}
    for one, two in products:
        left, right = _ramps(inputs, one, coarse[one]), _ramps(inputs, two, coarse[two])
        parts.append(np.einsum("ni,nj->nij", left, right).reshape(len(inputs), -1))
    basis = np.concatenate(parts, axis=1)
    truth = labels.astype(np.float64)

    def loss(theta: Array) -> tuple[float, Array]:
        z = theta[0] + basis @ theta[1:]
        p = 1 / (1 + np.exp(-np.clip(z, -40, 40)))
        value = float(weights @ (np.logaddexp(0, z) - truth * z)) + penalty * float(theta[1:] @ theta[1:])
        error = weights * (p - truth)
        return value, np.concatenate([[error.sum()], basis.T @ error + 2 * penalty * theta[1:]])

    start = np.full(1 + basis.shape[1], 0.1)
    # Bias and length may go either way.
    free = (None, None) if gated or long else (0.0, 0.0)
    start[1] = 0.0
    bounds = [(None, None), free] + [(0.0, None)] * (basis.shape[1] - 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500})
    theta, at = found.x, 2
    ramps, joint = [], []
    for name in use:
        for side in sides:
            size = len(knots[name]) - 1
            ramps.append((name, knots[name], tuple(float(v) for v in theta[at : at + size]), side))
            at += size
    for one, two in products:
        rows, columns = len(coarse[one]) - 1, len(coarse[two]) - 1
        block = theta[at : at + rows * columns].reshape(rows, columns)
        joint.append(
            (one, coarse[one], two, coarse[two], tuple(tuple(float(v) for v in row) for row in block))
        )
        at += rows * columns
    return Decision(tuple(ramps), tuple(joint), float(theta[0]), float(theta[1]))


def balanced_weights(sets: Sequence[str], labels: Array) -> Array:
    """Weights [rows] with which every set weighs the same, and in it both classes; they sum to 1."""
    names = np.asarray(sets)
    weights = np.zeros(len(names))
    for name in np.unique(names):
        for value in (True, False):
            members = (names == name) & (labels == value)
            if members.any():
                weights[members] = 1 / members.sum()
    return weights / weights.sum() if math.fsum(weights) else weights
