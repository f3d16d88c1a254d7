"""The bootstrap of many figures at once: it agrees with the plain figures, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import metrics
from surefoot.metrics.resampling import (
    draw,
    estimate,
    group_weights,
    interval,
    mean_of,
    weighted_auroc,
    weighted_rates,
)


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Labels, scores with ties, and groups of three rows."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.5
    return (
        labels,
        np.round(np.clip(labels * 0.3 + rng.random(n) * 0.7, 0, 1), 1),
        [str(i // 3) for i in range(n)],
    )


def test_each_resample_gives_the_figures_of_its_repeated_rows() -> None:
    labels, scores, groups = sample(30, seed=5)
    guesses = scores >= 0.5
    weights = group_weights(groups, seed=3, name="x", resamples=20)
    assert (weights[0] == 1).all(), "the first row is the data themselves"
    areas, rates = weighted_auroc(weights, labels, scores), weighted_rates(weights, labels, guesses)
    assert rates.keys() == {
        *("balanced_accuracy", "false_pass", "false_strip", "precision", "recall", "f1"),
    }
    for number, times in enumerate(weights.astype(int)):
        truth, guess = np.repeat(labels, times), np.repeat(guesses, times)
        assert areas[number] == pytest.approx(metrics.auroc(truth, np.repeat(scores, times)))
        for name, values in rates.items():
            assert values[number] == pytest.approx(getattr(metrics, name)(truth, guess)), name


def test_groups_stay_whole_and_the_draw_depends_on_seed_and_name() -> None:
    _, _, groups = sample(30, seed=5)
    weights = draw(groups, seed=3, name="x", resamples=20)
    for row in weights:
        assert row.sum() == 30
        assert all(len(set(row[i : i + 3])) == 1 for i in range(0, 30, 3))
    assert (weights == draw(groups, seed=3, name="x", resamples=20)).all()
    assert (weights != draw(groups, seed=4, name="x", resamples=20)).any()
    assert (weights != draw(groups, seed=3, name="y", resamples=20)).any()
    assert draw([], seed=0).shape[1] == 0


def test_intervals_agree_with_the_one_figure_bootstrap() -> None:
    labels, scores, groups = sample(201, seed=6)
    value, ends = estimate(weighted_auroc(group_weights(groups, seed=0), labels, scores))
    theirs = metrics.bootstrap_interval(
        lambda rows: metrics.auroc(labels[rows], scores[rows]), 201, groups=groups, seed=0
    )
    assert value == pytest.approx(metrics.auroc(labels, scores))
    assert ends == pytest.approx(theirs, abs=0.02)


def test_a_difference_of_figures_is_paired() -> None:
    labels, scores, groups = sample(60, seed=7)
    weights = group_weights(groups, seed=0)
    area = weighted_auroc(weights, labels, scores)
    assert estimate(area - weighted_auroc(weights, labels, scores * 0.5)) == (0.0, [0.0, 0.0])


def test_what_is_undefined_is_none_and_left_out_of_means() -> None:
    assert interval(np.array([np.nan, np.nan, np.nan, 0.5])) is None
    assert interval(np.array([np.nan, 0.5, 0.5, 0.5])) == [0.5, 0.5]
    mean = mean_of([np.array([0.5, np.nan]), np.array([1.0, np.nan])])
    assert mean[0] == 0.75
    assert np.isnan(mean[1])
    weights = group_weights(["a", "b"], seed=0)
    assert estimate(weighted_auroc(weights, [1, 1], [0.1, 0.2])) == (None, None)
    assert estimate(weighted_rates(weights, [1, 1], [1, 0])["false_pass"]) == (None, None)
    assert np.isnan(weighted_auroc(group_weights([], seed=0), [], [])).all()
