"""Figures for checkers and rankers, their intervals, calibration and thresholds. NumPy only.

Conventions, the same everywhere:

* ``labels`` are 0/1 or booleans; 1 is the positive class. For grounding that is *supported*, so that a
  false positive is a *false pass* and a false negative a *false strip*.
* ``predictions`` are 0/1 or booleans, ``scores`` any finite numbers that grow with the positive class,
  ``probabilities`` numbers in [0, 1]. A score at the threshold counts as positive.
* What is undefined (nothing given, one class only, no relevant document) is ``None``, never NaN, 0 or 1.
* Wrong shapes and values (lengths that differ, NaN, a label of 2) raise :class:`InputError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from surefoot.errors import ConfigurationError, InputError
from surefoot.metrics.calibration import Isotonic, Platt, choose_threshold, fit_isotonic, fit_platt
from surefoot.metrics.numeric import Floats, Indices, binary, finite, paired, steps
from surefoot.metrics.numeric import probabilities as checked_probabilities

__all__ = [
    "Confusion",
    "Isotonic",
    "Platt",
    "auroc",
    "average_precision",
    "balanced_accuracy",
    "bootstrap_interval",
    "brier",
    "choose_threshold",
    "confusion",
    "expected_calibration_error",
    "f1",
    "false_pass",
    "false_strip",
    "fit_isotonic",
    "fit_platt",
    "mean_defined",
    "mrr",
    "ndcg",
    "precision",
    "recall",
    "recall_at_k",
    "wilson_interval",
]

_MAX_EXPONENT = 60


# --- decisions ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of a two-way decision: true and false positives, true and false negatives."""

    tp: int
    fp: int
    tn: int
    fn: int


def confusion(labels: ArrayLike, predictions: ArrayLike) -> Confusion:
    """Count the four outcomes of ``predictions`` [n] against ``labels`` [n]."""
    truth, guess = paired(binary(labels, "labels"), binary(predictions, "predictions"))
    return Confusion(
        tp=int(np.sum(truth & guess)),
        fp=int(np.sum(~truth & guess)),
        tn=int(np.sum(~truth & ~guess)),
        fn=int(np.sum(truth & ~guess)),
    )


def balanced_accuracy(labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """Mean of the recalls of both classes, 0 to 1; ``None`` unless both classes occur in ``labels``."""
    c = confusion(labels, predictions)
    if not (c.tp + c.fn and c.tn + c.fp):
        return None
    return (c.tp / (c.tp + c.fn) + c.tn / (c.tn + c.fp)) / 2


def precision(labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """True positives / predicted positives; ``None`` where nothing was predicted positive."""
    c = confusion(labels, predictions)
    return _ratio(c.tp, c.tp + c.fp)


def recall(labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """True positives / positives; ``None`` where there are no positives."""
    c = confusion(labels, predictions)
    return _ratio(c.tp, c.tp + c.fn)


def f1(labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """Harmonic mean of precision and recall, 2tp / (2tp + fp + fn); ``None`` only where that is 0/0."""
    c = confusion(labels, predictions)
    return _ratio(2 * c.tp, 2 * c.tp + c.fp + c.fn)


def false_pass(labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """Unsupported claims that were let through / unsupported claims; ``None`` without any of those."""
    c = confusion(labels, predictions)
    return _ratio(c.fp, c.fp + c.tn)


def false_strip(labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """Supported claims that were rejected / supported claims; ``None`` without any of those."""
    c = confusion(labels, predictions)
    return _ratio(c.fn, c.fn + c.tp)


# --- order -------------------------------------------------------------------------------------------


def auroc(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Area under the ROC curve: the chance that a positive outranks a negative, ties counting half.

    Computed from average ranks (Mann and Whitney 1947; Hanley and McNeil 1982). ``None`` unless both
    classes occur.
    """
    truth, values = paired(binary(labels, "labels"), finite(scores, "scores"))
    positives = int(truth.sum())
    negatives = truth.size - positives
    if not (positives and negatives):
        return None
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    average_rank = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(average_rank[inverse.reshape(-1)][truth].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def average_precision(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Sum of precision x gain in recall over the distinct scores, highest first.

    Equal scores enter together, so the figure does not depend on the order of the input. ``None``
    where there are no positives.
    """
    truth, values = paired(binary(labels, "labels"), finite(scores, "scores"))
    if not truth.any():
        return None
    above_each = steps(truth, values)
    hits, seen = above_each.positive, above_each.positive + above_each.negative
    gains = np.diff(hits, prepend=0.0) / hits[-1]
    return float(np.sum(gains * hits / seen))


def ndcg(
    relevance: ArrayLike,
    *,
    k: int | None = None,
    judged: ArrayLike | None = None,
    gain: Literal["linear", "exponential"] = "linear",
) -> float | None:
    """Normalised discounted cumulative gain of one ranking (Järvelin and Kekäläinen 2002).

    Args:
        relevance: graded relevance [n] of the results *in the order in which they were ranked*, >= 0.
        k: depth; everything by default.
        judged: relevance of everything judged for the query, in any order. Give it where the ranking may
            miss relevant documents; by default the ideal is the best order of ``relevance`` itself.
        gain: ``linear`` as trec_eval and MTEB do, or ``exponential``, 2^rel - 1 (Burges et al. 2005).

    Returns:
        0 to 1, or ``None`` where nothing relevant was judged.
    """
    if gain not in ("linear", "exponential"):
        raise ConfigurationError(f"gain must be 'linear' or 'exponential', not {gain!r}")
    ranked = _relevance(relevance)
    ideal = np.sort(ranked if judged is None else _relevance(judged))[::-1]
    if gain == "exponential" and max(ranked.max(initial=0), ideal.max(initial=0)) > _MAX_EXPONENT:
        raise InputError(f"relevance above {_MAX_EXPONENT} is too large for the exponential gain")
    depth = _depth(k, max(ranked.size, ideal.size))
    best = _dcg(ideal[:depth], gain)
    if best == 0:
        return None
    figure = _dcg(ranked[:depth], gain) / best
    if figure > 1 + 1e-9:
        raise InputError("the ranking holds more relevance than was judged")
    return min(figure, 1.0)


def mrr(rankings: Iterable[ArrayLike], *, k: int | None = None) -> float | None:
    """Mean reciprocal rank of the first relevant result.

    Args:
        rankings: per query, the relevance of its results in ranked order; above 0 is relevant.
        k: a first relevant result below this rank counts 0, as does none at all.

    Returns:
        0 to 1, or ``None`` where there are no queries.
    """
    values: list[float | None] = []
    for ranking in rankings:
        ranked = _relevance(ranking)
        found = np.flatnonzero(ranked[: _depth(k, ranked.size)] > 0)
        values.append(1.0 / (int(found[0]) + 1) if found.size else 0.0)
    return mean_defined(values)


def recall_at_k(relevance: ArrayLike, *, k: int, relevant: int | None = None) -> float | None:
    """Share of the relevant documents of one query that are among its first ``k`` results.

    Args:
        relevance: relevance [n] in ranked order; above 0 is relevant.
        k: depth, at least 1.
        relevant: number of relevant documents of the query, found or not; by default those ranked.

    Returns:
        0 to 1, or ``None`` where nothing is relevant.
    """
    ranked = _relevance(relevance)
    total = int(np.sum(ranked > 0))
    if relevant is not None:
        if relevant < total:
            raise InputError(f"{total} relevant results are ranked, but relevant={relevant}")
        total = relevant
    return _ratio(int(np.sum(ranked[: _depth(k, ranked.size)] > 0)), total)


def mean_defined(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are defined; ``None`` where none is."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


# --- calibration -------------------------------------------------------------------------------------


def brier(labels: ArrayLike, probabilities: ArrayLike) -> float | None:
    """Mean squared distance of probability and outcome (Brier 1950), 0 to 1; ``None`` if empty."""
    truth, values = paired(binary(labels, "labels"), checked_probabilities(probabilities))
    return float(np.mean((values - truth) ** 2)) if truth.size else None


def expected_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
) -> float | None:
    """Mean distance of confidence and frequency over bins, weighted by their size (Guo et al. 2017).

    Args:
        labels: outcomes [n].
        probabilities: predicted chance of the positive class [n].
        bins: number of bins, at least 1. Empty ones count nothing.
        scheme: ``width`` cuts [0, 1] into equal parts; ``mass`` cuts at the quantiles, keeping equal
            probabilities together, so that the figure does not depend on the order of the input. Bins
            include their upper edge.

    Returns:
        0 to 1, or ``None`` if empty.
    """
    truth, values = paired(binary(labels, "labels"), checked_probabilities(probabilities))
    if bins < 1:
        raise ConfigurationError(f"bins must be at least 1, not {bins}")
    if scheme not in ("width", "mass"):
        raise ConfigurationError(f"scheme must be 'width' or 'mass', not {scheme!r}")
    if not truth.size:
        return None
    edges = np.linspace(0.0, 1.0, bins + 1)
    if scheme == "mass":
        edges = np.quantile(values, edges)
    bin_of = np.searchsorted(edges[1:-1], values, side="left")
    gap = np.bincount(bin_of, weights=values - truth, minlength=bins)
    return float(np.abs(gap).sum() / truth.size)


# --- intervals ---------------------------------------------------------------------------------------


def wilson_interval(successes: int, n: int, *, confidence: float = 0.95) -> tuple[float, float] | None:
    """Score interval of a proportion (Wilson 1927): sound for small ``n`` and near 0 and 1.

    Returns:
        (low, high) in [0, 1]; ``None`` where ``n`` is 0.
    """
    if not 0 <= successes <= n:
        raise InputError(f"not a proportion: {successes} of {n}")
    if n == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + _confidence(confidence) / 2)
    share = successes / n
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = ((centre + side * reach) / (1 + z * z / n) for side in (-1, 1))
    # At the ends the formula gives 0 and 1 exactly; rounding must not push it off them.
    return (0.0 if successes == 0 else low, 1.0 if successes == n else high)


def bootstrap_interval(
    statistic: Callable[[Indices], float | None],
    n: int,
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    groups: Sequence[object] | None = None,
    strata: Sequence[object] | None = None,
) -> tuple[float, float] | None:
    """Percentile bootstrap interval (Efron 1979) of any statistic of ``n`` rows.

    Args:
        statistic: takes the row numbers of a resample and returns the figure, or ``None``.
        n: number of rows.
        confidence: 0 to 1, exclusive.
        resamples: how many resamples, at least 1.
        seed: same seed, same interval.
        groups: per row, what it belongs to; whole groups are drawn, since rows that share a document are
            not independent.
        strata: per row, a stratum whose number of rows (or groups) is kept in every resample, such as
            the data set or the label. A group must not cross strata.

    Returns:
        (low, high), or ``None`` without rows or where the statistic is undefined on over half the resamples.
    """
    tail = (1 - _confidence(confidence)) / 2
    if resamples < 1:
        raise ConfigurationError(f"resamples must be at least 1, not {resamples}")
    for name, column in (("groups", groups), ("strata", strata)):
        if column is not None and len(column) != n:
            raise InputError(f"{name} has {len(column)} entries for {n} rows")
    if n <= 0:
        return None
    members: dict[object, list[int]] = {}
    for row in range(n):
        members.setdefault(row if groups is None else groups[row], []).append(row)
    layers: dict[object, list[Indices]] = {}  # stratum -> the rows of each of its groups
    for rows in members.values():
        inside = {None} if strata is None else {strata[row] for row in rows}
        if len(inside) > 1:
            raise InputError("a group lies in more than one stratum")
        layers.setdefault(inside.pop(), []).append(np.array(rows, dtype=np.intp))
    # Groups of one row, the usual case, are drawn without a loop.
    singles = [
        np.concatenate(layer) if all(rows.size == 1 for rows in layer) else None for layer in layers.values()
    ]
    rng = np.random.default_rng(seed)
    figures: list[float] = []
    for _ in range(resamples):
        drawn: list[Indices] = []
        for layer, single in zip(layers.values(), singles, strict=True):
            picks = rng.integers(0, len(layer), size=len(layer))
            if single is not None:
                drawn.append(single[picks])
            else:
                drawn.extend(layer[pick] for pick in picks.tolist())
        figure = statistic(np.concatenate(drawn))
        if figure is not None:
            figures.append(figure)
    if 2 * len(figures) < resamples:
        return None
    low, high = np.quantile(np.array(figures), [tail, 1 - tail]).tolist()
    return low, high


# --- parts -------------------------------------------------------------------------------------------


def _dcg(relevance: Floats, gain: str) -> float:
    gains = relevance if gain == "linear" else np.exp2(relevance) - 1
    return float(np.sum(gains / np.log2(np.arange(2, gains.size + 2))))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _confidence(value: float) -> float:
    if not 0 < value < 1:
        raise ConfigurationError(f"confidence must be between 0 and 1, not {value}")
    return value


def _depth(k: int | None, n: int) -> int:
    if k is not None and k < 1:
        raise ConfigurationError(f"k must be at least 1, not {k}")
    return n if k is None else k


def _relevance(values: ArrayLike) -> Floats:
    array = finite(values, "relevance")
    if array.size and array.min() < 0:
        raise InputError("relevance must not be negative")
    return array
