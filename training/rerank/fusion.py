"""Join the logit with cheaper signals: weights and probabilities fitted on held-out lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from training.rerank.features import Lists
from training.rerank.ranking import ndcg

from surefoot.rerank.fusion import logit_share

__all__ = ["SIGNALS", "Weights", "best_pull", "cross_fitted", "fit_platt", "fit_weights", "ranked"]

Floats = npt.NDArray[np.float64]
SIGNALS = ("logit", "cosine", "lexical")
_PULLS = (0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Weights:
    """score = logit * w1 + cosine * w2 + lexical * w3; w1 falls for more than ``long_query`` words."""

    logit: float = 1.0
    cosine: float = 0.0
    lexical: float = 0.0
    long_query: float = 0.0

    def score(self, item: Lists) -> Floats:
        """One score per candidate."""
        total: Floats = self.cosine * item.cosine + self.lexical * item.lexical
        weight = self.logit * logit_share(item.query, self.long_query)
        return total + weight * item.logit if self.logit else total


def _matrix(item: Lists, names: Sequence[str]) -> Floats:
    return np.stack([getattr(item, name) for name in names], axis=1)


def fit_weights(lists: Sequence[Lists], names: Sequence[str], pull: float = 0.3) -> Weights:
    """Weights of the highest listwise likelihood of the relevant passages; sources count the same.

    Signals are scaled by their spread within a list, and weights are pulled towards each other: lists from a
    few sources would otherwise set a signal aside that other collections need.

    Args:
        lists: the relevant passage first.
        names: of the signals, see :data:`SIGNALS`.
        pull: strength of the quadratic penalty on weights that differ.
    """
    counts: dict[str, int] = {}
    for item in lists:
        counts[item.source] = counts.get(item.source, 0) + 1
    data = [(_matrix(item, names), 1 / counts[item.source]) for item in lists]
    scale = np.concatenate([x - x.mean(axis=0) for x, _ in data]).std(axis=0) + 1e-9

    def loss(weights: Floats) -> tuple[float, Floats]:
        apart = weights - weights.mean()
        total = pull * float(apart @ apart) + 0.01 * float(weights @ weights)
        slope = 2 * pull * apart + 0.02 * weights
        for x, share in data:
            scaled = x / scale
            s = scaled @ weights
            p = np.exp(s - s.max())
            p /= p.sum()
            total -= share * float(np.log(p[0] + 1e-300)) / len(counts)
            slope = slope + share * (p @ scaled - scaled[0]) / len(counts)
        return total, slope

    found = minimize(loss, np.ones(len(names)), jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(names))
    best = dict(zip(names, found.x / scale, strict=True))
    unit = best.get("logit") or 1.0  # the logit keeps its scale where it takes part
    return Weights(**{"logit": 0.0} | {name: round(float(value / unit), 4) for name, value in best.items()})


def best_pull(lists: Sequence[Lists], names: Sequence[str]) -> float:
    """The pull with the best nDCG@10 on sources left out of the fit; the strongest of equals."""
    means = {pull: np.mean(list(cross_fitted(lists, names, pull).values())) for pull in _PULLS}
    return max(reversed(_PULLS), key=lambda pull: round(float(means[pull]), 3))


def cross_fitted(lists: Sequence[Lists], names: Sequence[str], pull: float = 0.3) -> dict[str, float]:
    """Mean nDCG@10 per source with weights fitted on the other sources."""
    made = {}
    for source in sorted({item.source for item in lists}):
        own = [item for item in lists if item.source == source]
        weights = fit_weights([item for item in lists if item.source != source], names, pull)
        made[source] = float(np.mean([ndcg(ranked(weights.score(item), item), item.gains) for item in own]))
    return made


def ranked(scores: Floats, item: Lists, first: str | None = None) -> list[int]:
    """Passage numbers by score, highest first, ties as they came; all candidates or a first stage's."""
    positions = list(range(len(item.rows))) if first is None else item.retrieved[first]
    order = np.argsort(-scores[positions], kind="stable")
    return [item.rows[positions[i]] for i in order]


def fit_platt(lists: Sequence[Lists], weights: Weights) -> tuple[float, float]:
    """a, b of P(relevant) = sigmoid(a * score + b), every source counting the same (Platt 1999)."""
    counts: dict[str, int] = {}
    for item in lists:
        counts[item.source] = counts.get(item.source, 0) + 1
    x = np.concatenate([weights.score(item) for item in lists])
    y = np.concatenate([np.isin(item.rows, list(item.gains)).astype(float) for item in lists])
    share = np.concatenate([np.full(len(item.rows), 1 / counts[item.source]) for item in lists])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        z = parameters[0] * x + parameters[1]
        p = 1 / (1 + np.exp(-np.clip(z, -50, 50)))
        value = float(np.sum(share * (np.logaddexp(0, z) - y * z)) / share.sum())
        error = share * (p - y) / share.sum()
        return value, np.array([float(error @ x), float(error.sum())])

    found = minimize(
        loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(1e-3, None), (None, None)]
    )
    return round(float(found.x[0]), 4), round(float(found.x[1]), 4)
