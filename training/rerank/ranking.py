"""Figures of ranked lists: nDCG@10 and paired bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["interval", "ndcg"]

Floats = npt.NDArray[np.float64]


def ndcg(ranked: Sequence[int], gains: Mapping[int, float], depth: int = 10) -> float:
    """Normalised discounted cumulative gain (Jarvelin & Kekalainen 2002), linear gains, all judgements.

    Args:
        ranked: passage numbers, best first.
        gains: passage number to gain; what is missing has none. Must hold a gain above 0.
        depth: cut.

    Returns:
        0 to 1.
    """
    discounts = 1 / np.log2(np.arange(depth) + 2)
    best = sorted(gains.values(), reverse=True)[:depth]
    got = [gains.get(passage, 0.0) for passage in ranked[:depth]]
    return float(np.dot(got, discounts[: len(got)]) / np.dot(best, discounts[: len(best)]))


def interval(groups: Sequence[Floats], *, seed: int = 1, rounds: int = 2000) -> tuple[float, float]:
    """95% percentile bootstrap interval of the mean of group means; queries are drawn within groups."""
    rng = np.random.default_rng(seed)
    means = np.zeros(rounds)
    for values in groups:
        means += values[rng.integers(0, len(values), (rounds, len(values)))].mean(axis=1)
    low, high = np.percentile(means / len(groups), [2.5, 97.5])
    return float(low), float(high)
