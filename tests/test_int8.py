"""Arithmetic in int8: only on request, only on processors made for it, only where it agrees with float32.

The processor's word is replaced here, since the machine that tests may have no such instructions. The
arithmetic is ONNX Runtime's own; where the machine really lacks them, sums saturate, and how close they come
is not tested.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from surefoot import Reranker, Verifier, doctor
from surefoot.cli import app
from surefoot.errors import ConfigurationError, ModelIntegrityError
from surefoot.inference import pairs as pairs_module
from surefoot.inference.cache import ScoreCache
from surefoot.inference.pairs import PairModel
from surefoot.inference.processor import INT8, processor
from surefoot.models.manifest import bundled, resolve_model

MODELS = Path(__file__).parent / "fixtures" / "models"
PAIRS = [
    ("The refund period is ten days after delivery.", "Refunds are possible for ten days."),
    ("The refund period is ten days after delivery.", "A fee of five percent applies."),
    ("A parcel of more than five kilograms costs nine euros to send. " * 3, "Heavy parcels cost nine euros."),
]


REAL = bool(INT8 & set(processor()[1]))


def says(*features: str):
    return lambda: ("some processor", list(features))


@pytest.fixture
def vnni(monkeypatch):
    """A processor that says it has VNNI, and arithmetic that is taken as it comes where that is not so."""
    monkeypatch.setattr(pairs_module, "processor", says("avx-vnni"))
    if not REAL:
        monkeypatch.setattr(pairs_module, "_LARGEST_GAP", float("inf"))


def made(name: str = "verify", arithmetic: str = "int8", cache: ScoreCache | None = None) -> PairModel:
    found = bundled(name)
    return PairModel(
        found.model_path,
        found.tokenizer_path,
        fingerprint=found.fingerprint,
        max_length=found.record.max_length,
        threads=2,
        cache=cache,
        arithmetic=arithmetic,  # type: ignore[arg-type]
        int8=found.int8_path,
    )


@pytest.mark.skipif(not REAL, reason="neither VNNI nor AMX here")
@pytest.mark.parametrize("name", ["verify", "rerank"])
@pytest.mark.parametrize("feature", ["avx512-vnni", "avx-vnni", "amx-int8"])
def test_it_is_used_where_the_processor_is_made_for_it(name, feature, monkeypatch):
    monkeypatch.setattr(pairs_module, "processor", says("avx2", feature))
    model, exact = made(name), made(name, "float32")
    assert (model.arithmetic, exact.arithmetic) == ("int8", "float32")
    ours, theirs = model.logits(PAIRS), exact.logits(PAIRS)
    assert (ours != theirs).any()  # otherwise it would be no other arithmetic
    assert np.abs(ours - theirs).max() < 0.15 * np.ptp(theirs)


def test_a_score_still_does_not_depend_on_its_batch(vnni):
    model = made()
    assert model.arithmetic == "int8"
    # All but the last have one padded length, so that in float32 they would share a run.
    pairs = [(PAIRS[0][0], f"Refunds are possible for {days} days.") for days in ("ten", "two", "six")]
    pairs.append(PAIRS[2])
    alone = np.concatenate([made().logits([pair]) for pair in pairs])
    assert (model.logits(pairs[::-1])[::-1] == alone).all()


def test_its_graph_holds_no_weights_and_reads_those_of_the_model(tmp_path, vnni):
    found = bundled("verify")
    assert found.int8_path.stat().st_size < 200_000
    for path in (found.model_path, found.int8_path):
        shutil.copy(path, tmp_path)
    model = (tmp_path / "model.onnx").read_bytes()
    arguments = {"fingerprint": "x", "arithmetic": "int8", "int8": tmp_path / "int8.onnx"}
    assert PairModel(found.model_path, found.tokenizer_path, **arguments).arithmetic == "int8"
    (tmp_path / "model.onnx").write_bytes(model[: len(model) // 2])
    with pytest.raises(ModelIntegrityError, match=r"int8\.onnx"):
        PairModel(found.model_path, found.tokenizer_path, **arguments)


@pytest.mark.parametrize("features", [(), ("avx2",), ("avx2", "avx512", "amx-bf16"), ("neon", "dotprod")])
def test_elsewhere_arithmetic_stays_float32_and_the_log_says_why(features, monkeypatch, caplog):
    monkeypatch.setattr(pairs_module, "processor", says(*features))
    with caplog.at_level(logging.WARNING, "surefoot"):
        model = made()
    assert model.arithmetic == "float32"
    assert "neither VNNI nor AMX" in caplog.text
    assert (model.logits(PAIRS) == made(arithmetic="float32").logits(PAIRS)).all()


def test_a_model_that_does_not_agree_is_not_used(monkeypatch, caplog):
    monkeypatch.setattr(pairs_module, "processor", says("avx-vnni"))
    monkeypatch.setattr(pairs_module, "_LARGEST_GAP", 1e-6)
    with caplog.at_level(logging.WARNING, "surefoot"):
        model = made()
    assert model.arithmetic == "float32"
    assert "logits differ by" in caplog.text
    assert (model.logits(PAIRS) == made(arithmetic="float32").logits(PAIRS)).all()


def test_weights_in_float32_have_no_int8_arithmetic(monkeypatch, caplog):
    monkeypatch.setattr(pairs_module, "processor", says("avx-vnni"))
    found = resolve_model(MODELS / "bert-nli", task="nli")
    with caplog.at_level(logging.WARNING, "surefoot"):
        model = PairModel(
            found.model_path,
            found.tokenizer_path,
            fingerprint=found.fingerprint,
            max_length=found.record.max_length,
            arithmetic="int8",
        )
    assert model.arithmetic == "float32"
    assert "not stored in int8" in caplog.text


def test_scores_of_the_two_are_not_mixed_in_a_cache(vnni):
    cache = ScoreCache()
    exact = made(arithmetic="float32", cache=cache).logits(PAIRS)
    assert (made(cache=cache).logits(PAIRS) != exact).any()
    assert (made(arithmetic="float32", cache=cache).logits(PAIRS) == exact).all()


def test_the_report_and_the_ranking_say_which(vnni):
    source, answer = "The museum opens at nine in the morning.", "The museum opens at nine."
    report = Verifier(arithmetic="int8", citations="optional", threads=1).verify(answer, [source])
    assert report.model == "verify (int8)"
    assert Verifier(citations="optional", threads=1).verify(answer, [source]).model == "verify"
    assert Reranker(arithmetic="int8", threads=1).rerank("museum", [source]).model == "rerank (int8)"
    assert Reranker(threads=1).rerank("museum", [source]).model == "rerank"


@pytest.mark.parametrize("kind", [Verifier, Reranker, made])
def test_an_unknown_arithmetic_is_refused(kind):
    with pytest.raises(ConfigurationError, match="float32"):
        kind(arithmetic="int4")


def test_the_command_line_and_the_doctor(tmp_path, vnni, monkeypatch):
    monkeypatch.setattr(doctor, "processor", says("avx-vnni"))
    answer, source = tmp_path / "answer.txt", tmp_path / "source.txt"
    answer.write_text("The museum opens at nine.", "utf-8")
    source.write_text("The museum opens at nine in the morning.", "utf-8")
    arguments = ["check", "--answer", str(answer), "--source", str(source), "--json", "-q", "--int8"]
    done = CliRunner().invoke(app, arguments)
    assert '"verify (int8)"' in done.stdout
    arguments = ["rerank", "--query", "when", "--source", str(source), "--json", "-q", "--int8"]
    done = CliRunner().invoke(app, arguments)
    assert '"rerank (int8)"' in done.stdout
    assert doctor.examine(threads=1)["processor"]["int8"] is True
    monkeypatch.setattr(doctor, "processor", says("avx2"))
    assert doctor.examine(threads=1)["processor"]["int8"] is False
