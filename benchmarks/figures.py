"""From what systems said about claims to figures with intervals. Nothing here runs a model.

Keys are flat: ``SET.figure`` for one set, ``mean.figure`` for the plain mean over the grounding sets, and
``mean_distinct.figure`` where sets that hold the same claims count as one. ``.ci`` is the 95% interval:
a percentile bootstrap over premises, since rows that share one are not independent, and Wilson's interval
for the false pass and false strip of a set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines import Outcome
from benchmarks.datasets import GroundingRow
from benchmarks.resampling import Vector, draw, interval, mean_of, ratio, weighted_auroc
from surefoot import metrics

__all__ = [
    "Figures",
    "GroundingResult",
    "differences",
    "families",
    "grounding_figures",
    "leave_one_out",
    "mean_figures",
    "summed_up",
]

Figures = dict[str, object]
MAIN = ("balanced_accuracy", "auroc", "false_pass", "false_strip", "balanced_accuracy_loso")
FURTHER = (
    *("balanced_accuracy_strict", "false_pass_strict", "false_strip_strict"),
    *("false_pass_loso", "false_strip_loso", "brier", "ece"),
)
RULES = ("_loso", "_strict")


@dataclass(frozen=True, slots=True)
class GroundingResult:
    """One system on one set, as arrays of one entry per row."""

    labels: NDArray[np.bool_]
    scores: Vector
    supported: NDArray[np.bool_]
    strict: NDArray[np.bool_]
    loso_scores: Vector
    groups: tuple[str, ...]
    abstained: int
    review: int
    loso: NDArray[np.bool_] | None = None
    threshold_loso: float | None = None

    def figure(self, name: str) -> float | None:
        """A figure over all rows."""
        if name == "auroc":
            return metrics.auroc(self.labels, self.scores)
        if name == "brier":
            return metrics.brier(self.labels, self.scores)
        if name == "ece":
            return metrics.expected_calibration_error(self.labels, self.scores, bins=10, scheme="mass")
        base, predictions = self._decided(name)
        if predictions is None:
            return None
        rates = {
            "balanced_accuracy": metrics.balanced_accuracy,
            "false_pass": metrics.false_pass,
            "false_strip": metrics.false_strip,
        }
        return rates[base](self.labels, predictions)

    def resampled(self, name: str, weights: Vector) -> Vector:
        """The same figure on each resample; NaN where it is undefined."""
        if name == "auroc":
            return weighted_auroc(weights, self.labels, self.scores)
        if name == "brier":
            return ratio(weights @ (self.scores - self.labels) ** 2, weights.sum(axis=1))
        base, predictions = self._decided(name)
        if predictions is None:
            return np.full(weights.shape[0], np.nan)
        passed = ratio(weights @ (~self.labels & predictions), weights @ ~self.labels)
        stripped = ratio(weights @ (self.labels & ~predictions), weights @ self.labels)
        values = {
            "balanced_accuracy": 1 - (passed + stripped) / 2,
            "false_pass": passed,
            "false_strip": stripped,
        }
        return values[base]

    def _decided(self, name: str) -> tuple[str, NDArray[np.bool_] | None]:
        rule = next((ending for ending in RULES if name.endswith(ending)), "")
        return name.removesuffix(rule), {"": self.supported, "_strict": self.strict, "_loso": self.loso}[rule]


def summed_up(rows: Sequence[GroundingRow], outcomes: Sequence[Outcome]) -> GroundingResult:
    """Turn what a system said about a set into arrays."""
    if len(rows) != len(outcomes):
        raise ValueError(f"{len(rows)} rows and {len(outcomes)} outcomes")
    return GroundingResult(
        labels=np.array([row.supported for row in rows], dtype=np.bool_),
        scores=np.array([o.score for o in outcomes], dtype=np.float64),
        supported=np.array([o.supported for o in outcomes], dtype=np.bool_),
        strict=np.array([o.strict for o in outcomes], dtype=np.bool_),
        # Below every threshold where the system rejects the claim whatever the score.
        loso_scores=np.array([-1.0 if o.veto or o.abstained else o.score for o in outcomes]),
        groups=tuple(row.group for row in rows),
        abstained=sum(o.abstained for o in outcomes),
        review=sum(o.review for o in outcomes),
    )


def families(
    shared: Mapping[tuple[str, str], float], names: Sequence[str], *, at_least: float
) -> list[set[str]]:
    """Sets joined with those that share at least that part of their claims, directly or in a chain."""
    groups = [{name} for name in names]
    for (one, two), share in shared.items():
        if share >= at_least:
            first = next(group for group in groups if one in group)
            second = next(group for group in groups if two in group)
            if first is not second:
                first |= second
                groups.remove(second)
    return groups


def leave_one_out(
    results: Mapping[str, GroundingResult], relatives: Sequence[set[str]]
) -> dict[str, GroundingResult]:
    """Decide each set at the threshold that is best on average over the others.

    Sets in the same family, which hold the same claims, are left out together. Rows are weighted so that
    every set and every class counts alike: the balanced accuracy that is maximised is the mean over sets.
    """
    decided: dict[str, GroundingResult] = {}
    for name, result in results.items():
        family = next((group for group in relatives if name in group), {name})
        others = [r for other, r in results.items() if other not in family]
        others = [r for r in others if r.labels.any() and not r.labels.all()]
        threshold = None
        if others:
            weights = [np.where(r.labels, 1 / r.labels.sum(), 1 / (~r.labels).sum()) for r in others]
            threshold = metrics.choose_threshold(
                np.concatenate([r.loso_scores for r in others]),
                np.concatenate([r.labels for r in others]),
                weights=np.concatenate(weights),
            )
        passed = None
        if threshold is not None:
            passed = (result.loso_scores >= threshold) & (result.loso_scores >= 0)
        decided[name] = replace(result, loso=passed, threshold_loso=threshold)
    return decided


def grounding_figures(name: str, result: GroundingResult, *, seed: int) -> Figures:
    """All figures of one system on one set."""
    n, positives = len(result.labels), int(result.labels.sum())
    figures: Figures = {f"{name}.n": n, f"{name}.supported": positives}
    weights = draw(result.groups, seed=seed, name=name)
    for figure in (
        *("balanced_accuracy", "balanced_accuracy_strict", "balanced_accuracy_loso"),
        *("auroc", "brier"),
    ):
        figures[f"{name}.{figure}"] = result.figure(figure)
        figures[f"{name}.{figure}.ci"] = interval(result.resampled(figure, weights))
    figures[f"{name}.ece"] = result.figure("ece")
    for base, of in (("false_pass", n - positives), ("false_strip", positives)):
        for rule in ("", *RULES):
            value = result.figure(base + rule)
            figures[f"{name}.{base}{rule}"] = value
            wilson = None if value is None else metrics.wilson_interval(round(value * of), of)
            figures[f"{name}.{base}{rule}.ci"] = None if wilson is None else list(wilson)
    figures[f"{name}.threshold_loso"] = result.threshold_loso
    figures[f"{name}.abstained"] = result.abstained
    figures[f"{name}.review"] = result.review
    return figures


def mean_figures(
    results: Mapping[str, GroundingResult], relatives: Sequence[set[str]], *, seed: int
) -> Figures:
    """Means over sets, with intervals from resampling the premises of each set."""
    figures: Figures = {"mean.sets": len(results)}
    weights = _weights(results, seed=seed)
    for figure in (*MAIN, *FURTHER):
        figures[f"mean.{figure}"] = _mean(results, figure)
        if figure != "ece":  # its bins depend on the sample, which biases a bootstrap of it
            figures[f"mean.{figure}.ci"] = interval(_resampled_mean(results, figure, weights))
    for figure in MAIN:
        figures[f"mean_distinct.{figure}"] = metrics.mean_defined(
            metrics.mean_defined(results[name].figure(figure) for name in group if name in results)
            for group in relatives
        )
    figures["mean.abstained"] = sum(result.abstained for result in results.values())
    figures["mean.review"] = sum(result.review for result in results.values())
    return figures


def differences(
    ours: Mapping[str, GroundingResult], theirs: Mapping[str, GroundingResult], *, seed: int
) -> Figures:
    """Mean figures of ours minus theirs on the sets that both ran, with paired bootstrap intervals."""
    names = [name for name in ours if name in theirs]
    one = {name: ours[name] for name in names}
    two = {name: theirs[name] for name in names}
    weights = _weights(one, seed=seed)
    figures: Figures = {}
    for figure in ("balanced_accuracy", "balanced_accuracy_loso", "auroc"):
        first, second = _mean(one, figure), _mean(two, figure)
        key = f"mean.{figure}_surefoot_minus_this"
        figures[key] = None if first is None or second is None else first - second
        apart = _resampled_mean(one, figure, weights) - _resampled_mean(two, figure, weights)
        figures[f"{key}.ci"] = interval(apart)
    return figures


def _mean(results: Mapping[str, GroundingResult], figure: str) -> float | None:
    return metrics.mean_defined(result.figure(figure) for result in results.values())


def _weights(results: Mapping[str, GroundingResult], *, seed: int) -> dict[str, Vector]:
    return {name: draw(result.groups, seed=seed, name=name) for name, result in results.items()}


def _resampled_mean(
    results: Mapping[str, GroundingResult], figure: str, weights: Mapping[str, Vector]
) -> Vector:
    if not results:
        return np.full(1, np.nan)
    return mean_of([result.resampled(figure, weights[name]) for name, result in results.items()])
