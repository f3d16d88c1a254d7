"""Golden scores: each relevance model still gives the logits that were written down for it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from surefoot.models.manifest import list_models, resolve_model
from surefoot.rerank import Reranker

GOLDEN = Path(__file__).parent / "golden"
RENEW = "PYTHONPATH=src python tests/golden/make_rerank.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_rerank", GOLDEN / "make_rerank.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_rerank"] = module
    spec.loader.exec_module(module)
    return module


def in_package() -> bool:
    return any(record.task == "relevance" for record in list_models())


@pytest.mark.parametrize("name", ["bert-relevance", "bert-relevance-two-labels", "package"])
def test_logits_are_those_written_down(name: str) -> None:
    if name == "package" and not in_package():
        pytest.skip("the package has no reranker yet")
    make = script()
    golden = json.loads((GOLDEN / "rerank.json").read_text(encoding="utf-8"))
    resolved = make.models()[name]
    written = golden["models"].get(name)
    assert written is not None, f"no golden scores for {name}: {RENEW}"
    assert written["fingerprint"] == resolved.fingerprint, f"another model: {RENEW}"
    assert golden["tolerance"] == make.TOLERANCE <= 1e-3
    now = make.scores(resolved)
    assert written["scores"].keys() == now.keys()
    compared = 0
    for query, values in now.items():
        for before, after in zip(written["scores"][query], values, strict=True):
            assert (before is None) == (after is None)
            if before is not None:
                assert after == pytest.approx(before, abs=golden["tolerance"])
                compared += 1
    assert compared >= 9


def test_the_bundled_reranker_ranks() -> None:
    if not in_package():
        pytest.skip("the package has no reranker yet")
    make = script()
    reranker = Reranker(strict=True)
    reranker.load()  # passes its self-test
    assert reranker.rerank("q", ["p"]).model == resolve_model(task="relevance").record.name
    for query, passages in list(make.CASES.items())[:3]:
        prose = [text for text in passages if "word word" not in text]
        shuffled = [*prose[1:], prose[0]]
        assert reranker.rerank(query, shuffled)[0].text == passages[0]


def test_a_score_of_the_bundled_reranker_does_not_depend_on_the_company() -> None:
    if not in_package():
        pytest.skip("the package has no reranker yet")
    reranker = Reranker(strict=True)
    query, passages = next(iter(script().CASES.items()))
    beside = reranker.rerank(query, [*passages, "word " * 400], top_k=None)
    for text in passages[:3]:
        (alone,) = reranker.rerank(query, [text])
        assert alone.fused_score is not None
        assert [source.fused_score for source in beside if source.text == text] == [alone.fused_score]
