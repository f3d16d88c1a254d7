"""Bootstrap of whole groups, for many figures at once. NumPy only.

Rows that share a premise or a document are not independent, so whole groups are drawn (Efron 1979; cluster
bootstrap: Davison and Hinkley 1997). A resample is a row of weights: how often each row of the data was
drawn.

A *figure* is an array [1 + resamples]: first its value on the data, then its value on each resample. Figures
computed with the same weights are paired. So differences and means of figures are plain array arithmetic, and
:func:`estimate` turns the result into a number and its interval. Undefined values are NaN inside this module
and leave it as ``None``.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from surefoot.metrics.numeric import Bools, Floats, binary, finite

__all__ = [
    "RESAMPLES",
    "draw",
    "estimate",
    "group_weights",
    "interval",
    "mean_of",
    "rates_of_mass",
    "ratio",
    "weighted_auroc",
    "weighted_rates",
]

RESAMPLES: Final = 1000
_BLOCK: Final = 2_000_000


def draw(groups: Sequence[str], *, seed: int, name: str = "", resamples: int = RESAMPLES) -> Floats:
    """Weights [resamples, rows]: as many groups are drawn as there are, with replacement.

    The draw depends only on the groups, ``seed`` and ``name``, so every system gets the same one.
    """
    if not groups:
        return np.zeros((resamples, 0))
    distinct, home = np.unique(np.array(groups), return_inverse=True)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    times = rng.multinomial(distinct.size, np.full(distinct.size, 1 / distinct.size), size=resamples)
    return np.asarray(times[:, home.reshape(-1)], dtype=np.float64)


def group_weights(groups: Sequence[str], *, seed: int, name: str = "", resamples: int = RESAMPLES) -> Floats:
    """Weights [1 + resamples, rows]: the data themselves, then what :func:`draw` returns."""
    drawn = draw(groups, seed=seed, name=name, resamples=resamples)
    return np.concatenate([np.ones((1, len(groups))), drawn])


def ratio(part: Floats, whole: Floats) -> Floats:
    """``part / whole``, NaN where ``whole`` is 0."""
    return np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def weighted_rates(weights: Floats, labels: ArrayLike, predictions: ArrayLike) -> dict[str, Floats]:
    """The figures of a two-way decision, as in :mod:`surefoot.metrics.figures`, for each row of weights.

    Args:
        weights: [draws, rows].
        labels: [rows], 1 is the positive class.
        predictions: [rows].

    Returns:
        Arrays [draws] of ``balanced_accuracy``, ``false_pass``, ``false_strip``, ``precision``, ``recall``
        and ``f1``; NaN where undefined.
    """
    truth, guess = binary(labels, "labels"), binary(predictions, "predictions")
    tp, fp = weights @ (truth & guess), weights @ (~truth & guess)
    fn, tn = weights @ (truth & ~guess), weights @ (~truth & ~guess)
    return rates_of_mass(tp, fp, tn, fn)


def rates_of_mass(tp: Floats, fp: Floats, tn: Floats, fn: Floats) -> dict[str, Floats]:
    """The figures of :func:`weighted_rates` from the mass of each outcome [draws]."""
    passed, stripped = ratio(fp, fp + tn), ratio(fn, fn + tp)
    return {
        "balanced_accuracy": 1 - (passed + stripped) / 2,
        "false_pass": passed,
        "false_strip": stripped,
        "precision": ratio(tp, tp + fp),
        "recall": ratio(tp, tp + fn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
    }


def weighted_auroc(weights: Floats, labels: ArrayLike, scores: ArrayLike) -> Floats:
    """Area under the ROC curve for each row of weights, ties counting half; NaN where a class is missing.

    Args:
        weights: [draws, rows].
        labels: [rows].
        scores: [rows].
    """
    truth: Bools = binary(labels, "labels")
    values = finite(scores, "scores")
    if not truth.size:
        return np.full(weights.shape[0], np.nan)
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=-np.inf))
    areas = []
    for block in np.array_split(weights, max(1, weights.size // _BLOCK)):  # bounds the memory
        # Mass of both classes at each distinct score, lowest first.
        positive = np.add.reduceat(block[:, order] * truth[order], starts, axis=1)
        negative = np.add.reduceat(block[:, order] * ~truth[order], starts, axis=1)
        below = np.cumsum(negative, axis=1) - negative
        won = (positive * (below + negative / 2)).sum(axis=1)
        areas.append(ratio(won, positive.sum(axis=1) * negative.sum(axis=1)))
    return np.concatenate(areas)


def mean_of(figures: Sequence[Floats]) -> Floats:
    """For each draw, the mean of the figures that are defined."""
    stacked = np.array(figures)
    defined = ~np.isnan(stacked)
    return ratio(np.where(defined, stacked, 0.0).sum(axis=0), defined.sum(axis=0).astype(np.float64))


def interval(values: Floats) -> list[float] | None:
    """The 95% percentile interval of resampled values; ``None`` where over half of them are undefined."""
    defined = values[~np.isnan(values)]
    if 2 * defined.size < values.size or not defined.size:
        return None
    low, high = np.quantile(defined, [0.025, 0.975]).tolist()
    return [low, high]


def estimate(figure: Floats) -> tuple[float | None, list[float] | None]:
    """(value on the data, 95% interval) of a figure [1 + resamples]; ``None`` for what is undefined."""
    value = None if np.isnan(figure[0]) else float(figure[0])
    return value, interval(figure[1:])
