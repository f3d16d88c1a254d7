"""Figures of whole answers: which ones hold a hallucination, and where."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines import AnswerClaim
from benchmarks.datasets import AnswerRow
from benchmarks.figures import Figures
from benchmarks.resampling import Vector, draw, interval, ratio, weighted_auroc
from surefoot import metrics

__all__ = ["FIGURES", "Answers", "answer_figures", "summed_up_answers"]

FIGURES = (
    *("auroc", "auroc_worst", "auroc_mean", "f1", "precision", "recall", "balanced_accuracy"),
    *("f1_strict", "f1_tuned", "precision_tuned", "recall_tuned", "f1_always"),
    *("span_precision", "span_recall", "span_f1", "claim_auroc"),
)


@dataclass(frozen=True, slots=True)
class Answers:
    """One system on answers; the last four have one entry per claim, the others one per answer."""

    hallucinated: NDArray[np.bool_]
    by_least: Vector
    by_worst: Vector
    by_mean: Vector
    flagged: NDArray[np.bool_]
    flagged_strict: NDArray[np.bool_]
    flagged_tuned: NDArray[np.bool_]
    flagged_gold: Vector
    """Characters of the answer that are both flagged and marked."""
    flagged_characters: Vector
    gold_characters: Vector
    claim_home: NDArray[np.intp]
    """The answer that the claim belongs to."""
    claim_bad: NDArray[np.bool_]
    claim_scores: Vector
    thresholds: tuple[float | None, float | None]

    def figure(self, name: str, members: NDArray[np.bool_]) -> float | None:
        """A figure over the answers in ``members`` [answers]."""
        labels = self.hallucinated[members]
        if name in self._ranked:
            return metrics.auroc(labels, self._ranked[name][members])
        if name == "claim_auroc":
            inside = members[self.claim_home]
            return metrics.auroc(self.claim_bad[inside], self.claim_scores[inside])
        if name.startswith("span_"):
            value = float(self.resampled(name, members[None, :].astype(np.float64))[0])
            return None if np.isnan(value) else value
        base, predictions = self._decided(name)
        rates = {
            "f1": metrics.f1,
            "precision": metrics.precision,
            "recall": metrics.recall,
            "balanced_accuracy": metrics.balanced_accuracy,
        }
        return rates[base](labels, predictions[members])

    def resampled(self, name: str, weights: Vector) -> Vector:
        """The same figure on each resample, given weights [resamples, answers]; NaN where undefined."""
        if name in self._ranked:
            return weighted_auroc(weights, self.hallucinated, self._ranked[name])
        if name == "claim_auroc":
            return weighted_auroc(weights[:, self.claim_home], self.claim_bad, self.claim_scores)
        if name.startswith("span_"):
            tp = weights @ self.flagged_gold
            fp, fn = weights @ self.flagged_characters - tp, weights @ self.gold_characters - tp
            tn = np.zeros_like(tp)
            base = name.removeprefix("span_")
        else:
            base, guess = self._decided(name)
            truth = self.hallucinated
            tp, fp = weights @ (truth & guess), weights @ (~truth & guess)
            fn, tn = weights @ (truth & ~guess), weights @ (~truth & ~guess)
        if base == "balanced_accuracy":
            return (ratio(tp, tp + fn) + ratio(tn, tn + fp)) / 2
        return {
            "precision": ratio(tp, tp + fp),
            "recall": ratio(tp, tp + fn),
            "f1": ratio(2 * tp, 2 * tp + fp + fn),
        }[base]

    @property
    def _ranked(self) -> dict[str, Vector]:
        return {"auroc": self.by_least, "auroc_worst": self.by_worst, "auroc_mean": self.by_mean}

    def _decided(self, name: str) -> tuple[str, NDArray[np.bool_]]:
        rules = {
            "_strict": self.flagged_strict,
            "_tuned": self.flagged_tuned,
            "_always": np.ones_like(self.flagged),
        }
        for ending, predictions in rules.items():
            if name.endswith(ending):
                return name.removesuffix(ending), predictions
        return name, self.flagged


def answer_figures(
    name: str, rows: Sequence[AnswerRow], claims: Sequence[Sequence[AnswerClaim]], *, seed: int
) -> Figures:
    """Figures of one system on answers; an answer with a marked span is positive (hallucinated).

    The main score of an answer is 1 - the mean support of its five least supported claims (``auroc``); a
    report calls that mean ``least_support``. ``auroc_worst`` takes the least, ``auroc_mean`` all of them.
    ``f1`` is the rule as shipped: any claim that is not supported makes the answer hallucinated. ``f1_tuned``
    puts a threshold on the main score: contexts are halved, and each half is decided at the threshold with
    the best F1 on the other. An answer without a checkable claim has nothing that could be flagged: score 0,
    counted in ``no_claims`` and named in ``no_claims_ids``. A claim is bad if a whole word of it lies in a
    marked span; span figures count characters of rejected claims.
    """
    data = summed_up_answers(rows, claims, seed=seed)
    without = [row.id for row, found in zip(rows, claims, strict=True) if not found]
    figures: Figures = {
        f"{name}.no_claims": len(without),
        f"{name}.no_claims_ids": without,
        f"{name}.claims": sum(len(found) for found in claims),
        f"{name}.abstained": sum(claim.outcome.abstained for found in claims for claim in found),
        f"{name}.review": sum(claim.outcome.review for found in claims for claim in found),
        f"{name}.thresholds_tuned": list(data.thresholds),
    }
    tasks = np.array([row.task for row in rows])
    parts = {name: np.ones(len(rows), dtype=np.bool_)}
    parts.update({f"{name}.{task}": tasks == task for task in sorted(set(tasks.tolist()))})
    for prefix, members in parts.items():
        groups = [row.group for row, inside in zip(rows, members.tolist(), strict=True) if inside]
        weights = np.zeros((0, len(rows)))
        if groups:
            drawn = draw(groups, seed=seed, name=prefix)
            weights = np.zeros((drawn.shape[0], len(rows)))
            weights[:, members] = drawn
        figures[f"{prefix}.n"] = len(groups)
        figures[f"{prefix}.hallucinated"] = int(data.hallucinated[members].sum())
        for figure in FIGURES:
            figures[f"{prefix}.{figure}"] = data.figure(figure, members)
            figures[f"{prefix}.{figure}.ci"] = interval(data.resampled(figure, weights))
    return figures


def summed_up_answers(
    rows: Sequence[AnswerRow], claims: Sequence[Sequence[AnswerClaim]], *, seed: int
) -> Answers:
    """Turn what a system said about answers into arrays."""
    if len(rows) != len(claims):
        raise ValueError(f"{len(rows)} answers and {len(claims)} results")
    support = [[claim.outcome.score for claim in found] for found in claims]
    hallucinated = np.array([bool(row.spans) for row in rows], dtype=np.bool_)
    worst = np.array([1 - min(scores, default=1.0) for scores in support], dtype=np.float64)
    least = np.array([1 - _mean(sorted(scores)[:5]) for scores in support], dtype=np.float64)
    flagged = np.array([any(not c.outcome.supported for c in found) for found in claims], dtype=np.bool_)
    tuned = np.zeros(len(rows), dtype=np.bool_)
    thresholds: list[float | None] = []
    first = _half([row.group for row in rows], seed=seed)
    for half in (first, ~first):
        threshold = metrics.choose_threshold(least[~half], hallucinated[~half], objective="f1")
        thresholds.append(threshold)
        # One class only in the other half: nothing to learn from, so the shipped rule stays.
        tuned[half] = flagged[half] if threshold is None else least[half] >= threshold
    characters = [_characters(row, found) for row, found in zip(rows, claims, strict=True)]
    both, called, gold = np.array(characters, dtype=np.float64).reshape(-1, 3).T
    pairs = [(home, row, claim) for home, row in enumerate(rows) for claim in claims[home]]
    return Answers(
        hallucinated=hallucinated,
        by_least=least,
        by_worst=worst,
        by_mean=np.array([1 - _mean(scores) for scores in support], dtype=np.float64),
        flagged=flagged,
        flagged_strict=np.array(
            [any(not c.outcome.strict for c in found) for found in claims], dtype=np.bool_
        ),
        flagged_tuned=tuned,
        flagged_gold=both,
        flagged_characters=called,
        gold_characters=gold,
        claim_home=np.array([home for home, _, _ in pairs], dtype=np.intp),
        claim_bad=np.array([_is_bad(row, claim) for _, row, claim in pairs], dtype=np.bool_),
        claim_scores=np.array([1 - claim.outcome.score for _, _, claim in pairs], dtype=np.float64),
        thresholds=(thresholds[0], thresholds[1]),
    )


def _mean(scores: Sequence[float]) -> float:
    """Of no claims at all 1: there is nothing that could be flagged."""
    return sum(scores) / len(scores) if scores else 1.0


def _half(groups: Sequence[str], *, seed: int) -> NDArray[np.bool_]:
    """A random half of the groups."""
    distinct = sorted(set(groups))
    random.Random(f"{seed}:halves").shuffle(distinct)
    chosen = set(distinct[: len(distinct) // 2])
    return np.array([group in chosen for group in groups], dtype=np.bool_)


def _characters(row: AnswerRow, claims: Sequence[AnswerClaim]) -> tuple[int, int, int]:
    """Characters that are both rejected and marked, rejected, marked."""
    gold = np.zeros(len(row.answer), dtype=np.bool_)
    for start, end in row.spans:
        gold[start:end] = True
    flagged = np.zeros(len(row.answer), dtype=np.bool_)
    for claim in claims:
        if not claim.outcome.supported:
            flagged[claim.start : claim.end] = True
    return int((gold & flagged).sum()), int(flagged.sum()), int(gold.sum())


def _is_bad(row: AnswerRow, claim: AnswerClaim) -> bool:
    """Whether at least one whole word of the claim lies in a marked span."""
    spans = [span for span in row.spans if span[0] < claim.end and claim.start < span[1]]
    if not spans:
        return False
    for word in re.finditer(r"\w+", row.answer[claim.start : claim.end]):
        first, last = claim.start + word.start(), claim.start + word.end()
        if any(start <= first and last <= end for start, end in spans):
            return True
    return False
