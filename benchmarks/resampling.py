"""Bootstrap of whole groups for many figures at once.

A resample is a row of weights: how often each row of the data was drawn. Rates and areas under the curve are
then weighted sums, computed for all resamples together; figures that are computed on the same weights are
paired, so that a difference of two systems has an interval of its own. Undefined values are NaN inside this
module and leave it as ``None``.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["RESAMPLES", "Vector", "draw", "interval", "mean_of", "ratio", "weighted_auroc"]

RESAMPLES = 1000
Vector = NDArray[np.float64]


def draw(groups: Sequence[str], *, seed: int, name: str, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Weights [resamples, rows]: whole groups are drawn, as many as there are.

    The draw depends on the groups, ``seed`` and ``name`` alone: every system gets the same.
    """
    if not groups:
        return np.zeros((resamples, 0))
    distinct, home = np.unique(np.array(groups), return_inverse=True)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    times = rng.multinomial(distinct.size, np.full(distinct.size, 1 / distinct.size), size=resamples)
    return np.asarray(times[:, home.reshape(-1)], dtype=np.float64)


def ratio(part: Vector, whole: Vector) -> Vector:
    """``part / whole``, NaN where ``whole`` is 0."""
    return np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def weighted_auroc(weights: Vector, labels: NDArray[np.bool_], scores: Vector) -> Vector:
    """AUROC of each resample, ties counting half; NaN where a class is missing.

    Args:
        weights: [resamples, rows].
        labels: [rows].
        scores: [rows].
    """
    if not labels.size:
        return np.full(weights.shape[0], np.nan)
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    areas = []
    for block in np.array_split(weights, max(1, weights.size // 2_000_000)):  # bounded memory
        # Mass of both classes at each distinct score, lowest first.
        positive = np.add.reduceat(block[:, order] * labels[order], starts, axis=1)
        negative = np.add.reduceat(block[:, order] * ~labels[order], starts, axis=1)
        below = np.cumsum(negative, axis=1) - negative
        won = (positive * (below + negative / 2)).sum(axis=1)
        areas.append(ratio(won, positive.sum(axis=1) * negative.sum(axis=1)))
    return np.concatenate(areas)


def mean_of(figures: Sequence[Vector]) -> Vector:
    """Per resample, the mean over those figures that are defined."""
    stacked = np.array(figures)
    defined = ~np.isnan(stacked)
    return ratio(np.where(defined, stacked, 0.0).sum(axis=0), defined.sum(axis=0).astype(np.float64))


def interval(values: Vector) -> list[float] | None:
    """The 95% percentile interval; ``None`` where over half of the resamples are undefined."""
    defined = values[~np.isnan(values)]
    if 2 * defined.size < values.size or not defined.size:
        return None
    low, high = np.quantile(defined, [0.025, 0.975]).tolist()
    return [low, high]
