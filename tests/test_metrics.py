"""Every figure against hand-worked cases, against scikit-learn where it is installed, and at the edges."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from surefoot import metrics
from surefoot.errors import ConfigurationError, InputError

LABELS = [1, 1, 1, 0, 0, 1, 0, 1]
GUESSES = [1, 0, 1, 1, 0, 1, 0, 0]  # tp 3, fn 2, fp 1, tn 2


@pytest.fixture
def sklearn_metrics() -> Any:
    return pytest.importorskip("sklearn.metrics")


def random_rows(seed: int, n: int = 200, *, levels: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Labels with scores that lean the right way; with ``levels``, full of ties."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.4
    scores = np.clip(0.5 + 0.25 * (labels - 0.4) + 0.25 * rng.standard_normal(n), 0, 1)
    return labels, scores if levels is None else np.round(scores * levels) / levels


def test_hand_worked_decisions() -> None:
    assert metrics.confusion(LABELS, GUESSES) == metrics.Confusion(tp=3, fp=1, tn=2, fn=2)
    assert metrics.balanced_accuracy(LABELS, GUESSES) == pytest.approx((3 / 5 + 2 / 3) / 2)
    assert metrics.precision(LABELS, GUESSES) == pytest.approx(3 / 4)
    assert metrics.recall(LABELS, GUESSES) == pytest.approx(3 / 5)
    assert metrics.f1(LABELS, GUESSES) == pytest.approx(6 / 9)
    assert metrics.false_pass(LABELS, GUESSES) == pytest.approx(1 / 3)
    assert metrics.false_strip(LABELS, GUESSES) == pytest.approx(2 / 5)


def test_always_supported_has_half_balanced_accuracy() -> None:
    assert metrics.balanced_accuracy([1, 1, 1, 0], [1, 1, 1, 1]) == 0.5
    assert metrics.false_pass([1, 1, 1, 0], [1, 1, 1, 1]) == 1.0
    assert metrics.false_strip([1, 1, 1, 0], [1, 1, 1, 1]) == 0.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("levels", [None, 5])
def test_decisions_and_ranking_agree_with_scikit_learn(
    seed: int, levels: int | None, sklearn_metrics: Any
) -> None:
    labels, scores = random_rows(seed, levels=levels)
    guesses = scores >= 0.5
    assert metrics.balanced_accuracy(labels, guesses) == pytest.approx(
        sklearn_metrics.balanced_accuracy_score(labels, guesses), abs=1e-12
    )
    assert metrics.f1(labels, guesses) == pytest.approx(sklearn_metrics.f1_score(labels, guesses), abs=1e-12)
    assert metrics.precision(labels, guesses) == pytest.approx(
        sklearn_metrics.precision_score(labels, guesses), abs=1e-12
    )
    assert metrics.auroc(labels, scores) == pytest.approx(
        sklearn_metrics.roc_auc_score(labels, scores), abs=1e-12
    )
    assert metrics.average_precision(labels, scores) == pytest.approx(
        sklearn_metrics.average_precision_score(labels, scores), abs=1e-12
    )
    assert metrics.brier(labels, scores) == pytest.approx(
        sklearn_metrics.brier_score_loss(labels, scores), abs=1e-12
    )
    tn, fp, fn, tp = sklearn_metrics.confusion_matrix(labels, guesses).ravel().tolist()
    assert metrics.confusion(labels, guesses) == metrics.Confusion(tp=tp, fp=fp, tn=tn, fn=fn)


def test_auroc_counts_ties_half() -> None:
    # Pairs (positive, negative): (.8,.8) tie, (.8,.2) won, (.4,.8) lost, (.4,.2) won.
    assert metrics.auroc([1, 0, 1, 0], [0.8, 0.8, 0.4, 0.2]) == pytest.approx(2.5 / 4)
    assert metrics.auroc([1, 0, 1, 0], [7, 7, 7, 7]) == 0.5


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=30),
)
def test_auroc_is_the_share_of_pairs_won(rows: list[tuple[bool, int]]) -> None:
    good = [score for label, score in rows if label]
    bad = [score for label, score in rows if not label]
    assume(good and bad)
    won = sum((g > b) + 0.5 * (g == b) for g in good for b in bad) / (len(good) * len(bad))
    assert metrics.auroc([r[0] for r in rows], [r[1] for r in rows]) == pytest.approx(won)


def test_average_precision_by_hand() -> None:
    # Highest first: 1, 0, 1: precision 1 at recall 1/2, 2/3 at recall 1.
    assert metrics.average_precision([1, 0, 1], [3, 2, 1]) == pytest.approx((1 + 2 / 3) / 2)
    # All tied: one step, precision 2/3 at full recall, whatever the order.
    assert metrics.average_precision([0, 1, 1], [1, 1, 1]) == pytest.approx(2 / 3)


def test_ndcg_by_hand() -> None:
    assert metrics.ndcg([3, 2, 1]) == 1.0
    dcg = 0 + 2 / math.log2(3) + 3 / math.log2(4)
    ideal = 3 + 2 / math.log2(3)
    assert metrics.ndcg([0, 2, 3]) == pytest.approx(dcg / ideal)
    assert metrics.ndcg([0, 2, 3], k=1) == 0.0
    exponential = (3 / math.log2(3) + 7 / math.log2(4)) / (7 + 3 / math.log2(3))
    assert metrics.ndcg([0, 2, 3], gain="exponential") == pytest.approx(exponential)


def test_ndcg_knows_of_documents_that_were_not_ranked() -> None:
    assert metrics.ndcg([1], judged=[1, 1]) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert metrics.ndcg([], judged=[1, 0]) == 0.0
    with pytest.raises(InputError, match="more relevance"):
        metrics.ndcg([1, 1], judged=[1])


@pytest.mark.parametrize("seed", range(5))
def test_ndcg_agrees_with_scikit_learn(seed: int, sklearn_metrics: Any) -> None:
    rng = np.random.default_rng(seed)
    relevance, scores = rng.integers(0, 4, 30), rng.permutation(30).astype(float)
    ranked = relevance[np.argsort(-scores)]
    for k in (1, 5, 10, 30):
        expected = sklearn_metrics.ndcg_score([relevance], [scores], k=k, ignore_ties=True)
        assert metrics.ndcg(ranked, k=k) == pytest.approx(expected, abs=1e-12)


def test_mrr_and_recall_by_hand() -> None:
    rankings = [[0, 1, 1], [1, 0], [0, 0], []]
    assert metrics.mrr(rankings) == pytest.approx((1 / 2 + 1 + 0 + 0) / 4)
    assert metrics.mrr(rankings, k=1) == pytest.approx(1 / 4)
    assert metrics.recall_at_k([0, 2, 1, 0, 1], k=3) == pytest.approx(2 / 3)
    assert metrics.recall_at_k([0, 2, 1, 0, 1], k=3, relevant=4) == pytest.approx(2 / 4)
    with pytest.raises(InputError):
        metrics.recall_at_k([1, 1], k=1, relevant=1)


@pytest.mark.parametrize(
    "figure",
    [
        metrics.balanced_accuracy,
        metrics.auroc,
    ],
)
@pytest.mark.parametrize("labels", [[], [1, 1], [0, 0]])
def test_one_class_is_undefined(figure: Any, labels: list[int]) -> None:
    assert figure(labels, labels) is None


@pytest.mark.parametrize(
    ("figure", "labels", "guesses"),
    [
        (metrics.precision, [1, 0], [0, 0]),
        (metrics.recall, [0, 0], [1, 0]),
        (metrics.f1, [0, 0], [0, 0]),
        (metrics.f1, [], []),
        (metrics.false_pass, [1, 1], [1, 0]),
        (metrics.false_strip, [0, 0], [1, 0]),
        (metrics.average_precision, [0, 0], [1, 2]),
        (metrics.average_precision, [], []),
        (metrics.brier, [], []),
        (metrics.expected_calibration_error, [], []),
    ],
)
def test_nothing_to_divide_by_is_undefined(figure: Any, labels: list[int], guesses: list[int]) -> None:
    assert figure(labels, guesses) is None


def test_other_undefined_figures() -> None:
    assert metrics.ndcg([]) is None
    assert metrics.ndcg([0, 0]) is None
    assert metrics.mrr([]) is None
    assert metrics.recall_at_k([0, 0], k=1) is None
    assert metrics.mean_defined([None, None]) is None
    assert metrics.mean_defined([0.5, None, 1.0]) == 0.75
    assert metrics.wilson_interval(0, 0) is None
    assert metrics.bootstrap_interval(lambda _: 0.5, 0) is None
    assert metrics.bootstrap_interval(lambda _: None, 10) is None
    for labels in ([], [1, 1], [0, 0]):
        scores = [0.5] * len(labels)
        assert metrics.fit_platt(scores, labels) is None
        assert metrics.fit_isotonic(scores, labels) is None
        assert metrics.choose_threshold(scores, labels) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.auroc([1, 0], [0.1, math.nan]),
        lambda: metrics.auroc([1, 0], [0.1, math.inf]),
        lambda: metrics.auroc([1, 0], [0.1]),
        lambda: metrics.auroc([1, 0], [0.1, None]),
        lambda: metrics.auroc([1, 0], ["a", "b"]),
        lambda: metrics.auroc([[1, 0]], [[0.1, 0.2]]),
        lambda: metrics.f1([1, 2], [1, 0]),
        lambda: metrics.f1([1, 0], [0.3, 0.7]),
        lambda: metrics.brier([1, 0], [1.1, 0]),
        lambda: metrics.expected_calibration_error([1], [-0.1]),
        lambda: metrics.ndcg([-1, 2]),
        lambda: metrics.ndcg([61], gain="exponential"),
        lambda: metrics.wilson_interval(3, 2),
        lambda: metrics.choose_threshold([0.1, 0.2], [0, 1], weights=[1, 0]),
        lambda: metrics.bootstrap_interval(lambda _: 0.5, 3, groups=[1, 2]),
        lambda: metrics.bootstrap_interval(lambda _: 0.5, 2, groups=[1, 1], strata=["a", "b"]),
    ],
)
def test_wrong_data_is_refused(call: Any) -> None:
    with pytest.raises(InputError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.expected_calibration_error([1], [0.5], bins=0),
        lambda: metrics.expected_calibration_error([1], [0.5], scheme="depth"),
        lambda: metrics.ndcg([1], k=0),
        lambda: metrics.ndcg([1], gain="square"),
        lambda: metrics.wilson_interval(1, 2, confidence=1.0),
        lambda: metrics.bootstrap_interval(lambda _: 0.5, 2, resamples=0),
        lambda: metrics.choose_threshold([0.1, 0.2], [0, 1], objective="accuracy"),
        lambda: metrics.choose_threshold([0.1, 0.2], [0, 1], max_false_pass=2),
    ],
)
def test_wrong_options_are_refused(call: Any) -> None:
    with pytest.raises(ConfigurationError):
        call()


def test_brier_by_hand() -> None:
    assert metrics.brier([1, 0], [0.8, 0.4]) == pytest.approx((0.04 + 0.16) / 2)


def test_calibration_error_by_hand() -> None:
    # Bins of width 1/2: {0.2, 0.4}, 1 of 2 true, mean .3; {0.9}, true, mean .9.
    labels, probabilities = [0, 1, 1], [0.2, 0.4, 0.9]
    assert metrics.expected_calibration_error(labels, probabilities, bins=2) == pytest.approx(
        2 / 3 * 0.2 + 1 / 3 * 0.1
    )
    # Equal mass: the median 0.4 is the edge, and belongs to the lower bin.
    assert metrics.expected_calibration_error(labels, probabilities, bins=2, scheme="mass") == pytest.approx(
        2 / 3 * 0.2 + 1 / 3 * 0.1
    )
    assert metrics.expected_calibration_error([0, 1], [0.0, 1.0], bins=10) == 0.0
    assert metrics.expected_calibration_error([1, 0], [0.0, 1.0], bins=10) == 1.0
    # Half right at 0.5: calibrated, though useless.
    assert metrics.expected_calibration_error([1, 0], [0.5, 0.5]) == 0.0


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("levels", [None, 4])
def test_calibration_error_agrees_with_scikit_learn_bins(scheme: Any, levels: int | None) -> None:
    calibration = pytest.importorskip("sklearn.calibration")
    labels, scores = random_rows(3, 400, levels=levels)
    strategy = {"width": "uniform", "mass": "quantile"}[scheme]
    edges = np.linspace(0, 1, 11) if scheme == "width" else np.quantile(scores, np.linspace(0, 1, 11))
    frequency, confidence = calibration.calibration_curve(labels, scores, n_bins=10, strategy=strategy)
    filled = np.bincount(np.searchsorted(edges[1:-1], scores), minlength=10)
    sizes = filled[filled > 0]
    expected = float(np.sum(sizes * np.abs(frequency - confidence)) / len(scores))
    assert metrics.expected_calibration_error(labels, scores, bins=10, scheme=scheme) == pytest.approx(
        expected, abs=1e-12
    )


@given(st.permutations(list(range(20))))
def test_figures_do_not_depend_on_the_order_of_rows(order: list[int]) -> None:
    labels, scores = random_rows(11, 20, levels=5)
    shuffled = labels[order], scores[order]
    for figure in (metrics.auroc, metrics.average_precision, metrics.brier):
        assert figure(*shuffled) == pytest.approx(figure(labels, scores), abs=1e-12)
    for scheme in ("width", "mass"):
        assert metrics.expected_calibration_error(*shuffled, bins=4, scheme=scheme) == pytest.approx(  # type: ignore[arg-type]
            metrics.expected_calibration_error(labels, scores, bins=4, scheme=scheme),  # type: ignore[arg-type]
            abs=1e-12,
        )


def test_wilson_by_hand() -> None:
    low, high = metrics.wilson_interval(5, 10) or (0, 0)
    assert (low, high) == pytest.approx((0.2366, 0.7634), abs=1e-4)  # Newcombe 1998: symmetric at 1/2
    low, high = metrics.wilson_interval(81, 263) or (0, 0)
    assert (low, high) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe 1998, table I
    assert metrics.wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert metrics.wilson_interval(20, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)
    assert (metrics.wilson_interval(0, 7) or (1, 1))[0] == 0.0
    assert (metrics.wilson_interval(7, 7) or (0, 0))[1] == 1.0


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_share(case: tuple[int, int]) -> None:
    successes, n = case
    low, high = metrics.wilson_interval(successes, n) or (1, 0)
    assert 0 <= low <= successes / n <= high <= 1


def test_bootstrap_is_seeded_and_close_to_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(10, 2, 400)

    def mean(rows: np.ndarray) -> float:
        return float(values[rows].mean())

    first = metrics.bootstrap_interval(mean, 400, seed=5)
    assert first == metrics.bootstrap_interval(mean, 400, seed=5)
    assert first != metrics.bootstrap_interval(mean, 400, seed=6)
    reach = 1.96 * values.std() / 20
    assert first == pytest.approx((values.mean() - reach, values.mean() + reach), abs=0.05)


def test_bootstrap_keeps_strata_and_groups_whole() -> None:
    labels = np.array([1, 1, 0, 0, 0, 0])
    seen: list[np.ndarray] = []

    def share(rows: np.ndarray) -> float:
        seen.append(rows)
        return float(labels[rows].mean())

    low, high = metrics.bootstrap_interval(share, 6, strata=labels.tolist(), resamples=50) or (0, 1)
    assert low == high == pytest.approx(1 / 3)
    seen.clear()
    metrics.bootstrap_interval(share, 6, groups=["a", "a", "a", "b", "b", "c"], resamples=50)
    sizes = set()
    for rows in seen:
        counts = np.bincount(rows, minlength=6)
        assert counts[0] == counts[1] == counts[2]
        assert counts[3] == counts[4]
        assert counts[0] + counts[3] + counts[5] == 3
        sizes.add(len(rows))
    assert len(sizes) > 1


def test_groups_widen_the_interval_where_rows_repeat() -> None:
    values = np.repeat(np.random.default_rng(1).normal(size=30), 10)

    def mean(rows: np.ndarray) -> float:
        return float(values[rows].mean())

    alone = metrics.bootstrap_interval(mean, 300) or (0, 0)
    grouped = metrics.bootstrap_interval(mean, 300, groups=np.repeat(np.arange(30), 10).tolist()) or (0, 0)
    assert grouped[1] - grouped[0] > 2 * (alone[1] - alone[0])


def test_bootstrap_leaves_undefined_resamples_out() -> None:
    labels, scores = np.array([1, 0, 0]), np.array([0.9, 0.1, 0.2])
    interval = metrics.bootstrap_interval(lambda rows: metrics.auroc(labels[rows], scores[rows]), 3)
    assert interval == (1.0, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_platt_agrees_with_scikit_learn(seed: int) -> None:
    calibration = pytest.importorskip("sklearn.calibration")
    labels, scores = random_rows(seed, 500)
    ours = metrics.fit_platt(scores, labels)
    assert ours is not None
    a, b = calibration._sigmoid_calibration(scores, labels.astype(float))
    theirs = 1 / (1 + np.exp(a * scores + b))
    assert ours(scores) == pytest.approx(theirs, abs=2e-3)
    assert ours.a < 0


def test_platt_is_the_minimum_of_the_loss() -> None:
    labels, scores = random_rows(9, 150)
    fitted = metrics.fit_platt(scores, labels)
    assert fitted is not None
    n1 = int(labels.sum())
    target = np.where(labels, (n1 + 1) / (n1 + 2), 1 / (len(labels) - n1 + 2))
    residual = target - fitted(scores)  # the gradient: 0 at the minimum of a convex loss
    assert abs(residual.sum()) < 1e-6
    assert abs((residual * scores).sum()) < 1e-6


def test_platt_of_separable_and_of_equal_scores_is_finite() -> None:
    split = metrics.fit_platt([-2, -1, 1, 2], [0, 0, 1, 1])
    assert split is not None
    assert np.isfinite([split.a, split.b]).all()
    assert split([-2.0, 2.0])[0] < 0.5 < split([-2.0, 2.0])[1]
    equal = metrics.fit_platt([0.3, 0.3, 0.3], [1, 1, 0])
    assert equal is not None
    # Both targets pulled in: (2 x 3/4 + 1/3) / 3
    assert equal([0.3])[0] == pytest.approx((2 * 3 / 4 + 1 / 3) / 3, abs=1e-6)
    huge = metrics.fit_platt([-1e300, 1e300, 5e299, -1e299], [0, 1, 0, 1])
    assert huge is not None
    assert np.isfinite(huge([-1e300, 0.0, 1e300])).all()


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
@settings(max_examples=25)
def test_platt_does_not_depend_on_units(shift: float, scale: float) -> None:
    labels, scores = random_rows(2, 80)
    plain, moved = metrics.fit_platt(scores, labels), metrics.fit_platt(scores * scale + shift, labels)
    assert plain is not None
    assert moved is not None
    assert moved(scores * scale + shift) == pytest.approx(plain(scores), abs=1e-5)


def test_isotonic_by_hand() -> None:
    fitted = metrics.fit_isotonic([1, 2, 3, 4], [0, 1, 0, 1])
    assert fitted is not None
    assert fitted([1, 2, 3, 4]).tolist() == [0.0, 0.5, 0.5, 1.0]
    assert fitted([0, 3.5, 9]).tolist() == [0.0, 0.75, 1.0]
    backwards = metrics.fit_isotonic([1, 2, 3], [1, 1, 0])
    assert backwards is not None
    assert backwards([1, 2, 3]) == pytest.approx([2 / 3] * 3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("levels", [None, 6])
def test_isotonic_agrees_with_scikit_learn(seed: int, levels: int | None) -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    labels, scores = random_rows(seed, 300, levels=levels)
    ours = metrics.fit_isotonic(scores, labels)
    assert ours is not None
    theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, labels.astype(float))
    grid = np.linspace(-0.2, 1.2, 101)
    assert ours(grid) == pytest.approx(theirs.predict(grid), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=40))
def test_isotonic_never_falls_and_stays_a_probability(rows: list[tuple[int, bool]]) -> None:
    fitted = metrics.fit_isotonic([r[0] for r in rows], [r[1] for r in rows])
    assume(fitted is not None)
    assert fitted is not None
    assert (np.diff(fitted.values) >= 0).all()
    assert min(fitted.values) >= 0
    assert max(fitted.values) <= 1
    # The mean is kept: a property of least squares, and what calibration in the large means.
    assert fitted([r[0] for r in rows]).mean() == pytest.approx(np.mean([r[1] for r in rows]))


def test_threshold_by_hand() -> None:
    scores, labels = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]
    # >= 0.8: recall 1/2, specificity 1. >= 0.35: 1, 1/2. Equal: the higher one passes less.
    assert metrics.choose_threshold(scores, labels) == pytest.approx(0.6)
    assert metrics.choose_threshold(scores, labels, max_false_pass=0.5) == pytest.approx(0.6)
    assert metrics.choose_threshold(scores, labels, objective="f1") == pytest.approx((0.1 + 0.35) / 2)
    assert metrics.choose_threshold([0, 1], [0, 1]) == 0.5
    nothing = metrics.choose_threshold([1, 1, 0], [0, 1, 1], max_false_pass=0.0)
    assert nothing is not None
    assert 1 < nothing < 1 + 1e-9


def test_threshold_weights_give_the_mean_over_sets() -> None:
    # Set A (100 rows) is best at 0.7, set B (4 rows) at 0.3; by rows A wins, by sets both count alike.
    labels_a, scores_a = [0] * 50 + [1] * 50, [0.6] * 50 + [0.8] * 50
    labels_b, scores_b = [0, 0, 1, 1], [0.2, 0.2, 0.4, 0.4]
    scores, labels = scores_a + scores_b, labels_a + labels_b
    assert metrics.choose_threshold(scores, labels) == pytest.approx(0.7)
    tie = metrics.choose_threshold(scores, labels, weights=[1 / 50] * 100 + [1 / 2] * 4)
    assert tie == pytest.approx(0.7)  # both ends give 0.75: the higher one
    b_counts_more = metrics.choose_threshold(scores, labels, weights=[1 / 50] * 100 + [1.0] * 4)
    assert b_counts_more == pytest.approx(0.3)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 10)), min_size=2, max_size=40),
    st.sampled_from(["balanced_accuracy", "f1"]),
    st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.25, 1.0])),
)
def test_no_other_threshold_is_better(
    rows: list[tuple[bool, int]], objective: Any, limit: float | None
) -> None:
    labels, scores = np.array([r[0] for r in rows]), np.array([r[1] / 10 for r in rows])
    assume(labels.any() and not labels.all())
    chosen = metrics.choose_threshold(scores, labels, objective=objective, max_false_pass=limit)
    assert chosen is not None
    figure = {"balanced_accuracy": metrics.balanced_accuracy, "f1": metrics.f1}[objective]

    def allowed(threshold: float) -> bool:
        return limit is None or (metrics.false_pass(labels, scores >= threshold) or 0) <= limit

    assert allowed(chosen)
    reached = figure(labels, scores >= chosen) or 0.0
    for threshold in [*(i / 20 for i in range(23)), 2.0]:
        if allowed(threshold):
            assert (figure(labels, scores >= threshold) or 0.0) <= reached + 1e-12


def test_figures_are_plain_python_numbers() -> None:
    labels, scores = random_rows(1)
    for value in (
        metrics.auroc(labels, scores),
        metrics.average_precision(labels, scores),
        metrics.balanced_accuracy(labels, scores > 0.5),
        metrics.brier(labels, scores),
        metrics.expected_calibration_error(labels, scores),
        metrics.ndcg([1, 0, 2]),
        metrics.mrr([[0, 1]]),
        metrics.choose_threshold(scores, labels),
        *(metrics.wilson_interval(1, 3) or ()),
        *(metrics.bootstrap_interval(lambda rows: float(rows.mean()), 5) or ()),
    ):
        assert type(value) is float


def test_metrics_need_nothing_but_numpy() -> None:
    program = (
        "import sys, surefoot.metrics;"
        "heavy = {'onnxruntime', 'tokenizers', 'torch', 'sklearn', 'scipy'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr
