"""From scores to probabilities and decisions: sigmoid, isotonic map, threshold. NumPy only.

``labels`` are 0/1 or booleans, 1 the positive class; ``scores`` any finite numbers. What cannot be fitted
because only one class occurs is ``None``: a map learnt from it would be sure of itself for no reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import ConfigurationError, InputError
from surefoot.metrics.numeric import Floats, binary, finite, paired, sigmoid, steps

__all__ = ["Isotonic", "Platt", "choose_threshold", "fit_isotonic", "fit_platt"]


@dataclass(frozen=True, slots=True)
class Platt:
    """A sigmoid over scores: P(positive | s) = 1 / (1 + exp(a s + b)); ``a`` < 0 where scores are sane."""

    a: float
    b: float

    def __call__(self, scores: ArrayLike) -> Floats:
        """Probabilities in [0, 1], of the same length as ``scores``."""
        return sigmoid(-(self.a * finite(scores, "scores") + self.b))


def fit_platt(scores: ArrayLike, labels: ArrayLike) -> Platt | None:
    """Fit a sigmoid to scores by maximum likelihood (Platt 1999), with the targets that he proposes.

    The targets (n1 + 1)/(n1 + 2) and 1/(n0 + 2) keep separable data finite. Newton's method with a
    backtracking search on the numerically safe form of the loss (Lin, Lin and Weng 2007).

    Returns:
        The sigmoid, or ``None`` unless both classes occur.
    """
    truth, values = paired(binary(labels, "labels"), finite(scores, "scores"))
    n1 = int(truth.sum())
    n0 = truth.size - n1
    if not (n1 and n0):
        return None
    # Fit on standardised scores: the steps then do not depend on the caller's units. The largest is
    # divided out first, so that huge scores do not overflow; equal scores become exactly 0.
    peak = float(np.abs(values).max()) or 1.0
    x = values / peak
    centre, spread = (float(x.mean()), float(x.std())) if x.min() < x.max() else (float(x[0]), 1.0)
    x = (x - centre) / spread
    target = np.where(truth, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    a, b = 0.0, math.log((n0 + 1) / (n1 + 1))

    def loss(slope: float, shift: float) -> float:
        z = slope * x + shift
        # -t log p - (1-t) log(1-p) with p = 1/(1+e^z), written without overflow
        return float(np.sum(target * z + np.logaddexp(0.0, -z)))

    current = loss(a, b)
    for _ in range(100):
        p = sigmoid(-(a * x + b))
        d1 = target - p
        gradient = np.array([np.dot(x, d1), d1.sum()])
        if np.abs(gradient).max() < 1e-10 * max(1, truth.size):
            break
        d2 = p * (1 - p)
        cross = float(np.dot(x, d2))
        hessian = np.array([[np.dot(x * x, d2) + 1e-12, cross], [cross, d2.sum() + 1e-12]])
        step = -np.linalg.solve(hessian, gradient)
        slope_along = float(gradient @ step)
        length = 1.0
        while length >= 1e-10:
            trial = loss(a + length * float(step[0]), b + length * float(step[1]))
            if trial < current + 1e-4 * length * slope_along:
                break
            length /= 2
        else:
            break  # no descent left at this precision
        a, b, current = a + length * float(step[0]), b + length * float(step[1]), trial
    return Platt(a=a / spread / peak, b=b - a * centre / spread)


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A non-decreasing map: ``values`` at ``scores`` (ascending), linear between, constant outside."""

    scores: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, scores: ArrayLike) -> Floats:
        """Probabilities in [0, 1], of the same length as ``scores``."""
        return np.asarray(np.interp(finite(scores, "scores"), self.scores, self.values), dtype=np.float64)


def fit_isotonic(scores: ArrayLike, labels: ArrayLike) -> Isotonic | None:
    """Fit the non-decreasing map nearest to the labels in squares, by pooling adjacent violators.

    Ayer et al. 1955; for calibration Zadrozny and Elkan 2002. Equal scores are averaged first.

    Returns:
        The map, or ``None`` unless both classes occur.
    """
    truth, raw = paired(binary(labels, "labels"), finite(scores, "scores"))
    if truth.all() or not truth.any():  # also where empty
        return None
    knots, inverse, counts = np.unique(raw, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse.reshape(-1), weights=truth.astype(np.float64))
    pools: list[tuple[float, int, int]] = []  # sum of labels, number of labels, number of knots
    for total, count in zip(sums.tolist(), counts.tolist(), strict=True):
        pool = (total, count, 1)
        # Compare as products of counts: exact, where a comparison of means might see rounding.
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])
        pools.append(pool)
    fitted = np.concatenate([np.full(width, total / count) for total, count, width in pools])
    return Isotonic(scores=tuple(knots.tolist()), values=tuple(fitted.tolist()))


def choose_threshold(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    objective: Literal["balanced_accuracy", "f1"] = "balanced_accuracy",
    max_false_pass: float | None = None,
    weights: ArrayLike | None = None,
) -> float | None:
    """The threshold that is best on these rows; a score at or above it is then positive.

    Args:
        scores: scores [n].
        labels: labels [n].
        objective: what to maximise. Among equals the highest threshold wins, which passes least.
        max_false_pass: if given, only thresholds whose false-pass rate is at most this, 0 to 1, compete.
        weights: weight [n] of each row, > 0. With 1 / (size of the row's class in its data set) the
            balanced accuracy that is maximised is the mean over the data sets.

    Returns:
        A threshold midway between two scores; the lowest score where everything passes; a value just
        above the highest where nothing does. ``None`` unless both classes occur.
    """
    if objective not in ("balanced_accuracy", "f1"):
        raise ConfigurationError(f"objective must be 'balanced_accuracy' or 'f1', not {objective!r}")
    if max_false_pass is not None and not 0 <= max_false_pass <= 1:
        raise ConfigurationError(f"max_false_pass must be in [0, 1], not {max_false_pass}")
    truth, values = paired(binary(labels, "labels"), finite(scores, "scores"))
    mass = np.ones(truth.size) if weights is None else paired(truth, finite(weights, "weights"))[1]
    if mass.size and mass.min() <= 0:
        raise InputError("weights must be above 0")
    if truth.all() or not truth.any():
        return None
    above_each = steps(truth, values, mass)
    # Row i: positive are the i highest distinct scores. Row 0: none.
    tp = np.concatenate([[0.0], above_each.positive])
    fp = np.concatenate([[0.0], above_each.negative])
    positives, negatives = tp[-1], fp[-1]
    if objective == "balanced_accuracy":
        merit = (tp / positives + 1 - fp / negatives) / 2
    else:
        merit = 2 * tp / (tp + fp + positives)
    if max_false_pass is not None:
        merit = np.where(fp / negatives <= max_false_pass + 1e-12, merit, -1.0)
    best = int(np.flatnonzero(merit >= merit.max() - 1e-12)[0])
    if best == 0:
        return float(np.nextafter(above_each.scores[0], np.inf))
    above = float(above_each.scores[best - 1])
    if best == above_each.scores.size:
        return above
    below = float(above_each.scores[best])
    middle = below / 2 + above / 2
    return middle if below < middle <= above else above
