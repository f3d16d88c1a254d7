"""One ranking out of several lists, keyed by whatever names a passage.

A list that holds the same key twice would count it twice; so each list is first reduced to the first
occurrence of every key. No score is taken from where a list happens to end: a lone passage keeps what it has.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from surefoot.errors import ConfigurationError

__all__ = ["reciprocal_rank", "weighted_scores"]

Key = TypeVar("Key", bound=Hashable)


def reciprocal_rank(
    lists: Sequence[Sequence[Key]], *, weights: Sequence[float] | None = None, constant: float = 60.0
) -> list[tuple[Key, float]]:
    """Fuse by ranks: a key scores the sum of ``weight / (constant + rank)`` over the lists that have it.

    Cormack, Clarke & Buettcher 2009, "Reciprocal rank fusion outperforms Condorcet and individual rank
    learning methods".

    Args:
        lists: keys, best first.
        weights: one for each list, 0 or more; equal by default.
        constant: 0 or more; the larger, the less the first ranks stand out.

    Returns:
        (key, score), best first; equal scores in the order of first appearance.

    Raises:
        ConfigurationError: a weight or the constant is negative, or their number is not that of the lists.
    """
    factors = _weights(weights, len(lists))
    if not constant >= 0:
        raise ConfigurationError(f"constant must not be negative: {constant}")
    scores: dict[Key, float] = {}
    for keys, weight in zip(lists, factors, strict=True):
        for rank, key in enumerate(dict.fromkeys(keys), start=1):
            scores[key] = scores.get(key, 0.0) + weight / (constant + rank)
    return _ordered(scores)


def weighted_scores(
    lists: Sequence[Sequence[tuple[Key, float]]],
    *,
    minima: Sequence[float],
    weights: Sequence[float] | None = None,
) -> list[tuple[Key, float]]:
    """Fuse by scores, each list scaled from its theoretical minimum to its best score.

    Bruch, Gai & Ingber 2023, "An analysis of fusion functions for hybrid retrieval" (TM2C2). A key that a
    list lacks counts as that list's minimum.

    Args:
        lists: (key, score), best first.
        minima: the least score that each list could give: -1 for a cosine, 0 for BM25.
        weights: one for each list, 0 or more; equal by default. They are scaled to the sum 1.

    Returns:
        (key, score from 0 to 1), best first; equal scores in the order of first appearance.

    Raises:
        ConfigurationError: a weight is negative, all are 0, or their number is not that of the lists.
    """
    factors = _weights(weights, len(lists))
    if len(minima) != len(lists):
        raise ConfigurationError(f"{len(lists)} lists need as many minima, not {len(minima)}")
    scores: dict[Key, float] = {}
    for pairs, weight, least in zip(lists, factors, minima, strict=True):
        first: dict[Key, float] = {}
        for key, score in pairs:
            first.setdefault(key, score)
        span = max(first.values(), default=least) - least
        for key, score in first.items():
            # All at the minimum: nothing of this list speaks for anything.
            scaled = (score - least) / span if span > 0 else 0.0
            scores[key] = scores.get(key, 0.0) + weight * scaled / sum(factors)
    return _ordered(scores)


def _weights(weights: Sequence[float] | None, count: int) -> list[float]:
    factors = [1.0] * count if weights is None else [float(weight) for weight in weights]
    if len(factors) != count:
        raise ConfigurationError(f"{count} lists need as many weights, not {len(factors)}")
    if any(not 0 <= weight < float("inf") for weight in factors) or (factors and not sum(factors) > 0):
        raise ConfigurationError(f"weights must be 0 or more, and not all 0: {factors}")
    return factors


def _ordered(scores: dict[Key, float]) -> list[tuple[Key, float]]:
    return sorted(scores.items(), key=lambda item: -item[1])  # a stable sort keeps ties as they came
