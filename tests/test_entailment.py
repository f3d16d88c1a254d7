"""Label order and the self-test."""

from __future__ import annotations

import dataclasses
import math

import pytest

from surefoot.errors import ModelError
from surefoot.inference.entailment import Entailment, NliModel, _columns
from surefoot.models.manifest import bundled


@pytest.fixture(scope="module")
def model() -> NliModel:
    return NliModel(bundled("verify"))


def test_probabilities_sum_to_one_and_point_the_right_way(model: NliModel) -> None:
    same, opposite, other = model.score(
        [
            ("The library opens at nine.", "The library opens at nine."),
            ("The shop is open on Sunday.", "The shop is not open on Sunday."),
            ("The shop sells bread.", "The mayor resigned in 1987 after a scandal."),
        ]
    )
    for score in (same, opposite, other):
        assert score.entailment + score.neutral + score.contradiction == pytest.approx(1, abs=1e-12)
    assert same.entailment > 0.5
    assert opposite.contradiction > 0.5
    assert other.entailment < 0.5
    assert same.log_odds > 0 > opposite.log_odds
    assert opposite.contradiction_odds > 1 > 0 > other.contradiction_odds
    assert opposite.contradiction_odds == pytest.approx(math.log(opposite.contradiction / opposite.neutral))


@pytest.mark.parametrize(
    ("neutral", "contradiction", "expected"),
    [(0.5, 0.0, -26.2), (0.0, 0.5, 26.2), (0.0, 0.0, 0.0), (1e-300, 1e-300, 0.0)],
)
def test_odds_of_contradiction_are_finite_where_a_probability_is_nothing(
    neutral: float, contradiction: float, expected: float
) -> None:
    score = Entailment(1 - neutral - contradiction, neutral, contradiction, 0.0)
    assert score.contradiction_odds == pytest.approx(expected, abs=0.1)


def test_a_wrong_label_order_is_noticed() -> None:
    found = bundled("verify")
    swapped = dataclasses.replace(found.record, labels=("contradiction", "entailment", "neutral"))
    with pytest.raises(ModelError, match="fails its self-test"):
        NliModel(dataclasses.replace(found, record=swapped))


def test_the_self_test_can_be_left_out_on_purpose() -> None:
    found = bundled("verify")
    swapped = dataclasses.replace(found.record, labels=("contradiction", "entailment", "neutral"))
    NliModel(dataclasses.replace(found, record=swapped), self_test=False)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("contradiction", "entailment", "neutral"), {"contradiction": 0, "entailment": 1, "neutral": 2}),
        (("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), {"entailment": 0, "neutral": 1, "contradiction": 2}),
        (("entailment", "not_entailment"), {"entailment": 0, "neutral": 1}),
        (("not entailment", "entailment"), {"neutral": 0, "entailment": 1}),
    ],
)
def test_label_orders(labels: tuple[str, ...], expected: dict[str, int]) -> None:
    assert _columns(labels, "m") == expected


@pytest.mark.parametrize(
    "labels",
    [
        ("LABEL_0",),
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("entailment",),
        ("neutral", "contradiction"),
        ("entailment", "entailment"),
        ("positive", "negative"),
    ],
)
def test_labels_that_are_no_nli_are_refused(labels: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match="no NLI model"):
        _columns(labels, "m")


def test_outputs_and_labels_must_match_in_number() -> None:
    found = bundled("verify")
    two = dataclasses.replace(found.record, labels=("entailment", "not_entailment"))
    with pytest.raises(ModelError, match="3 outputs"):
        NliModel(dataclasses.replace(found, record=two))
