"""The pieces of the speed benchmarks that can be wrong without a stop-watch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks import rerank, verify  # noqa: E402
from benchmarks.rerank import LONGEST, SHORTEST, mixed_lengths, passages_of, timed  # noqa: E402

from surefoot.inference.text import TextEncoder  # noqa: E402
from surefoot.models.manifest import bundled  # noqa: E402


def test_passages_have_their_lengths_and_fit_into_the_model() -> None:
    lengths = mixed_lengths(100, seed=1)
    assert min(lengths) >= SHORTEST
    assert max(lengths) <= LONGEST
    assert len(set(lengths)) > 80
    passages = passages_of([512] * 15, seed=15) + passages_of(lengths, seed=100)
    assert [len(text) for text in passages] == [512] * 15 + lengths
    assert len(set(passages)) == 115
    tokens = TextEncoder(bundled("verify").tokenizer_path).count(passages)
    assert max(tokens) + 3 + 20 <= 512  # beside a query: both sides read all of it


def test_both_sides_see_the_same_and_ratios_point_the_right_way(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    seen: dict[str, list[tuple[str, tuple[str, ...]]]] = {"ours": [], "theirs": []}
    monkeypatch.setattr("benchmarks.timing.time.perf_counter", lambda: now[0])

    def side(name: str, cost: float) -> object:
        def call(query: str, passages: list[str]) -> None:
            seen[name].append((query, tuple(passages)))
            now[0] += cost * len(passages)

        return call

    figures = timed(side("ours", 1.0), side("theirs", 3.0), rounds=3)  # type: ignore[arg-type]
    assert figures["speedup_15"] == figures["speedup_100"] == pytest.approx(3)
    assert figures["lowest_speedup_15"] == pytest.approx(3)
    assert figures["seconds_15"] == pytest.approx(15)
    assert seen["ours"] == seen["theirs"]
    assert {len(passages) for _, passages in seen["ours"]} == {15, 100}


def test_the_code_of_the_fresh_processes_is_code() -> None:
    for module in (rerank, verify):
        for code in (module.OURS, module.THEIRS):
            compile(code.format(c="a'b", t=2, cut="[:1]"), "code", "exec")


def test_claims_are_of_four_kinds() -> None:
    encoder = TextEncoder(bundled("verify").tokenizer_path)
    passages, outside = (verify.texts(n, encoder, outside=out) for n, out in ((10, False), (20, True)))
    assert max(encoder.count(passages)) <= verify.PASSAGE_TOKENS
    assert not set(passages) & set(outside)
    claims = verify.make_claims(passages, outside, seed=0)
    text = " ".join(passages)
    assert [claim in text for claim in claims] == [True, False, False, False] * 2 + [True, False]
    assert all(claim in " ".join(outside) for claim in claims[3::4])
    assert claims == verify.make_claims(passages, outside, seed=0)
