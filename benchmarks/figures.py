"""From what systems said about claims and answers to figures with 95% intervals. Nothing here runs a model.

Keys are flat: ``SET.FIGURE`` for one set, ``mean.FIGURE`` for the plain mean over the grounding sets, and
``.ci`` for the interval: a percentile bootstrap over premises, since rows that share one are not independent,
and Wilson's interval for the false pass and false strip of a set. ``_loso`` marks a decision at the threshold
that is best on average over the *other* sets (leave one set out).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import AnswerRow, GroundingRow
from benchmarks.systems import AnswerClaim, Outcome
from surefoot import metrics
from surefoot.metrics.resampling import (
    estimate,
    group_weights,
    mean_of,
    rates_of_mass,
    weighted_auroc,
    weighted_rates,
)

__all__ = [
    "ClaimFigures",
    "Said",
    "answer_figures",
    "claim_figures",
    "gains",
    "leave_one_out",
    "mean_figures",
    "set_figures",
    "summed_up",
]

Figures = dict[str, Any]
ClaimFigures = dict[str, NDArray[np.float64]]
"""Name -> figure as :mod:`surefoot.metrics.resampling` describes it."""
Bools = NDArray[np.bool_]
LEAST = 5
"""The score of an answer is 1 - the mean support of so many of its least supported claims."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one system said about one set; arrays [rows]."""

    labels: Bools
    scores: NDArray[np.float64]
    supported: Bools
    rejected: Bools
    groups: tuple[str, ...]
    loso: Bools | None = None
    """The decision at the threshold from the other sets."""


def summed_up(rows: Sequence[GroundingRow], outcomes: Sequence[Outcome]) -> Said:
    """Turn outcomes into arrays."""
    if len(rows) != len(outcomes):
        raise ValueError(f"{len(rows)} rows and {len(outcomes)} outcomes")
    return Said(
        labels=np.array([row.supported for row in rows], dtype=np.bool_),
        scores=np.array([outcome.score for outcome in outcomes], dtype=np.float64),
        supported=np.array([outcome.supported for outcome in outcomes], dtype=np.bool_),
        rejected=np.array([outcome.rejected for outcome in outcomes], dtype=np.bool_),
        groups=tuple(row.group for row in rows),
    )


def leave_one_out(said: Mapping[str, Said], relatives: Sequence[set[str]]) -> dict[str, Said]:
    """Decide each set at the threshold that is best on average over the others.

    Sets in the same family, which share claims, are left out together. Rows are weighted so that every set
    and every class counts alike: what is maximised is the mean balanced accuracy over sets.
    """
    decided = dict(said)
    for name, one in said.items():
        family = next((group for group in relatives if name in group), {name})
        others = [
            r for other, r in said.items() if other not in family and 0 < r.labels.sum() < r.labels.size
        ]
        if others:
            threshold = metrics.choose_threshold(
                np.concatenate([np.where(r.rejected, -1.0, r.scores) for r in others]),
                np.concatenate([r.labels for r in others]),
                weights=np.concatenate(
                    [np.where(r.labels, 1 / r.labels.sum(), 1 / (~r.labels).sum()) for r in others]
                ),
            )
            decided[name] = replace(one, loso=(one.scores >= threshold) & ~one.rejected)
    return decided


def claim_figures(said: Said, *, seed: int, name: str) -> ClaimFigures:
    """The figures of one system on one set; the draw depends on ``seed``, ``name`` and the groups alone."""
    weights = group_weights(said.groups, seed=seed, name=name)
    found = {"auroc": weighted_auroc(weights, said.labels, said.scores)}
    for ending, decided in (("", said.supported), ("_loso", said.loso)):
        if decided is not None:
            rates = weighted_rates(weights, said.labels, decided)
            for key in ("balanced_accuracy", "false_pass", "false_strip"):
                found[key + ending] = rates[key]
    return found


def set_figures(name: str, said: Said, found: ClaimFigures) -> Figures:
    """The flat keys of one set."""
    positives = int(said.labels.sum())
    figures: Figures = {f"{name}.n": said.labels.size, f"{name}.supported": positives}
    figures[f"{name}.ece"] = metrics.expected_calibration_error(
        said.labels, said.scores, bins=10, scheme="mass"
    )
    for key, figure in found.items():
        value, ends = estimate(figure)
        if key.startswith("false_") and value is not None:
            of = positives if key.startswith("false_strip") else said.labels.size - positives
            ends = list(metrics.wilson_interval(round(value * of), of) or ())
        figures |= {f"{name}.{key}": value, f"{name}.{key}.ci": ends}
    return figures


def mean_figures(found: Mapping[str, ClaimFigures], figures: Mapping[str, Any]) -> Figures:
    """Means over the sets, each counting once; ``figures`` holds the keys of :func:`set_figures`."""
    means: Figures = {"mean.sets": len(found)}
    means["mean.ece"] = metrics.mean_defined(figures[f"{name}.ece"] for name in found)
    for key in {key: None for one in found.values() for key in one}:
        value, ends = estimate(mean_of([one[key] for one in found.values() if key in one]))
        means |= {f"mean.{key}": value, f"mean.{key}.ci": ends}
    return means


def gains(ours: Mapping[str, ClaimFigures], theirs: Mapping[str, ClaimFigures]) -> Figures:
    """Means of ours minus theirs over the sets that both ran, paired."""
    figures: Figures = {}
    names = [name for name in ours if name in theirs]
    for key in ("balanced_accuracy", "balanced_accuracy_loso", "auroc"):
        both = [name for name in names if key in ours[name] and key in theirs[name]]
        if both:
            mine, other = (mean_of([sets[name][key] for name in both]) for sets in (ours, theirs))
            value, ends = estimate(mine - other)
            figures |= {
                f"mean.{key}_surefoot_minus_this": value,
                f"mean.{key}_surefoot_minus_this.ci": ends,
            }
    return figures


def answer_figures(
    name: str, rows: Sequence[AnswerRow], claims: Sequence[Sequence[AnswerClaim]], *, seed: int
) -> Figures:
    """Figures of one system on answers; an answer with a marked span is positive (hallucinated).

    The score of an answer is 1 - the mean support of its five least supported claims (``auroc``; a report
    calls that mean ``least_support``). ``auroc_worst`` takes the least one, ``auroc_mean`` all. ``f1`` is the
    rule as
    shipped: any claim that is not supported makes the answer hallucinated. ``f1_tuned`` puts a threshold on
    the
    score: contexts are halved, and each half is decided at the threshold with the best F1 on the other. An
    answer without a checkable claim scores 0 and is counted in ``no_claims``. A claim is bad if a whole word
    of it lies in a marked span; span figures count characters of rejected claims.
    """
    if len(rows) != len(claims):
        raise ValueError(f"{len(rows)} answers and {len(claims)} results")
    support = [sorted(claim.outcome.score for claim in found) for found in claims]
    truth = np.array([bool(row.spans) for row in rows], dtype=np.bool_)
    flagged = np.array(
        [any(not claim.outcome.supported for claim in found) for found in claims], dtype=np.bool_
    )
    scores = {
        "auroc": np.array([1 - _mean(each[:LEAST]) for each in support]),
        "auroc_worst": np.array([1 - _mean(each[:1]) for each in support]),
        "auroc_mean": np.array([1 - _mean(each) for each in support]),
    }
    decisions = {
        "f1": flagged,
        "f1_tuned": _tuned([row.group for row in rows], scores["auroc"], truth, flagged, seed=seed),
        "f1_always": np.ones_like(flagged),
    }
    characters = [_characters(row, found) for row, found in zip(rows, claims, strict=True)]
    both, called, gold = np.array(characters, dtype=np.float64).reshape(-1, 3).T
    pairs = [(home, rows[home], claim) for home, found in enumerate(claims) for claim in found]
    homes = np.array([home for home, _, _ in pairs], dtype=np.intp)
    bad = np.array([_is_bad(row, claim) for _, row, claim in pairs], dtype=np.bool_)
    doubt = np.array([1 - claim.outcome.score for _, _, claim in pairs], dtype=np.float64)

    tasks = np.array([row.task for row in rows])
    parts = {name: np.ones(len(rows), dtype=np.bool_)}
    parts |= {f"{name}.{task}": tasks == task for task in sorted(set(tasks.tolist()))}
    figures: Figures = {
        f"{name}.no_claims": sum(not found for found in claims),
        f"{name}.no_claims_ids": [row.id for row, found in zip(rows, claims, strict=True) if not found],
        f"{name}.claims": len(pairs),
    }
    for part, members in parts.items():
        groups = [row.group for row, inside in zip(rows, members.tolist(), strict=True) if inside]
        drawn = group_weights(groups, seed=seed, name=part)
        weights = np.zeros((len(drawn), len(rows)))
        weights[:, members] = drawn
        hits = weights @ both
        span = rates_of_mass(hits, weights @ called - hits, np.zeros_like(hits), weights @ gold - hits)
        found = {key: weighted_auroc(weights, truth, each) for key, each in scores.items()}
        found |= {key: weighted_rates(weights, truth, each)["f1"] for key, each in decisions.items()}
        found |= {f"span_{key}": span[key] for key in ("precision", "recall", "f1")}
        found["claim_auroc"] = weighted_auroc(weights[:, homes], bad, doubt)
        figures |= {f"{part}.n": len(groups), f"{part}.hallucinated": int(truth[members].sum())}
        for key, figure in found.items():
            figures[f"{part}.{key}"], figures[f"{part}.{key}.ci"] = estimate(figure)
    return figures


def _mean(scores: Sequence[float]) -> float:
    """1 if there are no claims: nothing could be flagged."""
    return sum(scores) / len(scores) if scores else 1.0


def _tuned(
    groups: Sequence[str], score: NDArray[np.float64], truth: Bools, flagged: Bools, *, seed: int
) -> Bools:
    """Each half of the groups decided by the threshold that is best on the other."""
    distinct = sorted(set(groups))
    random.Random(f"{seed}:halves").shuffle(distinct)
    chosen = set(distinct[: len(distinct) // 2])
    first = np.array([group in chosen for group in groups], dtype=np.bool_)
    tuned = flagged.copy()  # stays as shipped if the other half has one class only
    for half in (first, ~first):
        threshold = metrics.choose_threshold(score[~half], truth[~half], objective="f1")
        if threshold is not None:
            tuned[half] = score[half] >= threshold
    return tuned


def _characters(row: AnswerRow, claims: Sequence[AnswerClaim]) -> tuple[int, int, int]:
    """Characters that are both rejected and marked, rejected, marked."""
    gold, flagged = np.zeros((2, len(row.answer)), dtype=np.bool_)
    for start, end in row.spans:
        gold[start:end] = True
    for claim in claims:
        if not claim.outcome.supported:
            flagged[claim.start : claim.end] = True
    return int((gold & flagged).sum()), int(flagged.sum()), int(gold.sum())


def _is_bad(row: AnswerRow, claim: AnswerClaim) -> bool:
    """Whether at least one whole word of the claim lies in a marked span."""
    words = re.finditer(r"\w+", row.answer[claim.start : claim.end])
    places = [(claim.start + word.start(), claim.start + word.end()) for word in words]
    return any(start <= first and last <= end for start, end in row.spans for first, last in places)
