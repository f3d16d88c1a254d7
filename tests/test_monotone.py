"""The additive decision of a manifest, and the features that it is a function of."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot import Verifier
from surefoot.errors import ConfigurationError, ModelIntegrityError
from surefoot.evidence.index import EvidenceIndex
from surefoot.evidence.lexicon import load_lexicon
from surefoot.models.manifest import bundled
from surefoot.models.monotone import Monotone
from surefoot.models.records import Calibration, ModelRecord
from surefoot.schema import Reason, Source, Verdict
from surefoot.verify.features import features_of, source_words

DATA: dict[str, Any] = {
    "bias": -1.0,
    "long_bias": 0.5,
    "long": [math.log(60), math.log(250)],
    "terms": [
        {"input": "entailment", "sign": 1, "side": "any", "knots": [-4, 0, 4], "rise": [1.0, 3.0]},
        {"input": "unseen_near", "sign": -1, "side": "long", "knots": [0.0, 0.5], "rise": [2.0]},
        {"input": "aligned", "sign": 1, "side": "short", "knots": [0.5, 1.0], "rise": [1.0]},
    ],
}
MODEL = Monotone.from_dict(DATA)


def features(**changed: float) -> dict[str, float]:
    given = {"aligned": 0.75, "unseen_near": 0.25, "overlap": 0.5, "source_words": math.log(1001)}
    return given | changed


def test_the_value_is_the_sum_written_in_the_manifest() -> None:
    # Long sources: the short term does not count, the long ones fully.
    assert MODEL.value(2.0, features()) == pytest.approx(-1.0 + 0.5 + (1.0 + 1.5) + 2.0 * 0.5)
    # Short sources: the other way round.
    few = features(source_words=math.log(20))
    assert MODEL.value(2.0, few) == pytest.approx(-1.0 + (1.0 + 1.5) + 0.5)
    # Half-way, on the scale of logarithms.
    middle = features(source_words=(math.log(60) + math.log(250)) / 2)
    assert MODEL.value(2.0, middle) == pytest.approx(-1.0 + 0.25 + 2.5 + 0.5 * 1.0 + 0.5 * 0.5)


@given(
    st.floats(-50, 50),
    st.floats(-50, 50),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 12),
)
def test_no_input_can_move_it_in_the_wrong_direction(
    one: float, two: float, seen: float, unseen: float, more: float, less: float, words: float
) -> None:
    low, high = sorted((one, two))
    same = features(source_words=words)
    assert MODEL.value(low, same) <= MODEL.value(high, same)
    few, many = sorted((seen, unseen))
    assert MODEL.value(one, {**same, "unseen_near": many}) <= MODEL.value(one, {**same, "unseen_near": few})
    worse, better = sorted((less, more))
    assert MODEL.value(one, {**same, "aligned": worse}) <= MODEL.value(one, {**same, "aligned": better})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("terms", 0, "rise"), [1.0, -0.1]),
        (("terms", 0, "rise"), [1.0]),
        (("terms", 0, "rise"), [1.0, float("nan")]),
        (("terms", 0, "knots"), [0, 0, 1]),
        (("terms", 0, "knots"), "abc"),
        (("terms", 0, "input"), "__class__"),
        (("terms", 0, "sign"), 0),
        (("terms", 0, "side"), "left"),
        (("terms",), []),
        (("terms",), [{}]),
        (("terms",), DATA["terms"] * 30),
        (("long",), [5.0, 4.0]),
        (("long",), [5.0]),
        (("bias",), "0"),
        (("bias",), float("inf")),
        (("other",), 1),
    ],
)
def test_a_decision_that_cannot_work_is_refused(path: tuple[Any, ...], value: object) -> None:
    data = copy.deepcopy(DATA)
    at: Any = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(ModelIntegrityError):
        Monotone.from_dict(data)


def test_a_calibration_with_a_decision_survives_json() -> None:
    record = bundled("verify").record
    calibration = Calibration(kind="monotone", decision=MODEL, presets={"qa": (0.3, 0.6)})
    again = ModelRecord.from_dict(
        json.loads(json.dumps(replace(record, calibration=calibration).to_dict()))
    ).calibration
    assert again == calibration
    assert again.support(1.0, features()) == calibration.support(1.0, features())
    with pytest.raises(ValueError, match="features"):
        again.support(1.0)


def test_kind_and_decision_go_together() -> None:
    with pytest.raises(ModelIntegrityError):
        Calibration(kind="monotone")
    with pytest.raises(ModelIntegrityError):
        Calibration(decision=MODEL)


def test_a_preset_changes_the_band_and_an_unknown_one_is_the_callers_mistake() -> None:
    calibration = Calibration(presets={"qa": (0.3, 0.6)})
    assert (calibration.preset("qa").review_low, calibration.preset("qa").review_high) == (0.3, 0.6)
    with pytest.raises(ConfigurationError, match="has: qa"):
        calibration.preset("poetry")
    with pytest.raises(ModelIntegrityError):
        Calibration(presets={"qa": (0.6, 0.3)})


def _features(claim: str, text: str) -> dict[str, float]:
    lexicon = load_lexicon()
    index = EvidenceIndex([Source(id="1", text=text)], lexicon)
    ranked = index.rank(claim, limit=8)
    return features_of(index.tokens_of(claim), ranked, lexicon, source_words=source_words([text]))


def test_features_see_what_the_source_lacks() -> None:
    text = "The library opens at nine on weekdays. Dogs are welcome in the garden."
    said = _features("The library opens at nine on weekdays.", text)
    assert said["unseen_near"] == 0.0
    assert said["aligned"] == pytest.approx(1.0)
    near = _features("The library opens at nine on holidays.", text)
    far = _features("The library opens at nine on Zanzibar volcanoes.", text)
    assert 0 < near["unseen_near"] < far["unseen_near"] <= 1
    assert far["aligned"] < near["aligned"] < 1
    assert said["source_words"] == pytest.approx(math.log(1 + 13))


def test_counting_words_stops_where_it_no_longer_matters() -> None:
    assert source_words([]) == 0.0
    assert source_words(["a b c", "", "d"]) == pytest.approx(math.log(5))
    assert source_words(["word " * 4_000, "word " * 4_000]) == pytest.approx(math.log(5_001))


def test_the_best_cosine_of_a_token_is_with_itself() -> None:
    lexicon = load_lexicon()
    ids = lexicon.tokens(["the quick brown fox"])[0].ids
    assert lexicon.best_cosines(ids, ids) == pytest.approx(np.ones(len(ids)))
    assert lexicon.best_cosines(ids, ids[:0]).tolist() == [0.0] * len(ids)


def test_a_verifier_uses_the_decision_of_its_model() -> None:
    """The same claim and source, a decision that only asks for seen words: the network has no say."""
    text = "The library opens at nine on weekdays and closes at noon on Saturdays."
    verifier = Verifier()
    verifier.load()
    words_only = Monotone.from_dict(
        {
            "bias": -10.0,
            "long_bias": 0.0,
            "long": [1.0, 2.0],
            "terms": [
                {"input": "unseen_near", "sign": -1, "side": "any", "knots": [0.0, 0.05], "rise": [20.0]}
            ],
        }
    )
    verifier._calibration = Calibration(kind="monotone", decision=words_only)
    turned, unseen = verifier.check_claims(
        ["The library opens at noon on Saturdays.", "The museum charges eleven euros."], [text]
    )
    assert turned.support == pytest.approx(1 / (1 + math.exp(-10)))
    assert unseen.support == pytest.approx(1 / (1 + math.exp(10)))


def test_a_preset_sends_to_review_what_lies_in_its_band() -> None:
    """Whatever the weights: the same support, and verdicts that follow the thresholds of the manifest."""
    request = json.loads((Path(__file__).parents[1] / "examples" / "policy.json").read_text("utf-8"))
    bands = bundled("verify").record.calibration.presets
    assert set(bands) == {"qa", "summary", "data-to-text", "general"}
    plain = Verifier().verify(request["answer"], request["sources"])
    for name, (low, high) in bands.items():
        careful = Verifier(preset=name).verify(request["answer"], request["sources"])
        for usual, claim in zip(plain.claims, careful.claims, strict=True):
            assert claim.support == usual.support
            if Reason.ENTAILED in usual.reasons:
                assert claim.support is not None
                expected = Verdict.SUPPORTED if claim.support >= high else Verdict.REVIEW
                assert claim.verdict is (expected if claim.support >= low else Verdict.UNSUPPORTED)
    entailed = [claim.support for claim in plain.claims if Reason.ENTAILED in claim.reasons]
    assert any(support is not None and support < bands["general"][1] for support in entailed)


def test_a_preset_that_the_model_does_not_have() -> None:
    with pytest.raises(ConfigurationError, match="general"):
        Verifier(preset="poetry").load()
