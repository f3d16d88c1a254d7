"""The pieces of ``benchmarks/rerank.py`` that can be wrong without a stop-watch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.rerank import (  # noqa: E402
    LONGEST,
    OURS,
    SHORTEST,
    TARGETS,
    THEIRS,
    arguments_of,
    mixed_lengths,
    passages_of,
    reached,
    timed,
)

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
    monkeypatch.setattr("benchmarks.verify.time.perf_counter", lambda: now[0])

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


def test_targets() -> None:
    fine = {"speedup_15": 1.4, "speedup_100": 2.0, "cold_start_ratio": 8.0, "rss_ratio": 0.5}
    assert all(reached(fine).values())
    poor = {"speedup_15": 1.39, "speedup_100": 1.9, "cold_start_ratio": 7.9, "rss_ratio": 0.51}
    assert not any(reached(poor).values())
    assert reached(fine).keys() == TARGETS.keys()


def test_the_code_of_the_fresh_processes_is_code() -> None:
    for code in (OURS.format(folder="a'b", t=2, s=True), THEIRS.format(folder="a'b", t=2)):
        compile(code, "code", "exec")
    assert arguments_of(["--checkpoint", "x"]).untrained is False
