"""Windows over long passages: they fit, overlap, leave nothing out, and take linear time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled
from surefoot.rerank.windows import split, split_all
from surefoot.schema import Span

MODELS = Path(__file__).parent / "fixtures" / "models"
PROSE = "The refund period is ten days after delivery, and a fee of five percent applies to each. " * 30


@pytest.fixture(scope="module")
def wordpiece() -> TextEncoder:
    return TextEncoder(bundled("verify").tokenizer_path)


@pytest.fixture(scope="module")
def unigram() -> TextEncoder:
    return TextEncoder(MODELS / "deberta-nli" / "tokenizer.json")


class Counting:
    """An encoder that notes how much it was given."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self.characters = 0

    def encode(self, texts: Sequence[str]) -> list[Any]:
        self.characters += sum(map(len, texts))
        return self.encoder.encode(texts)


def check(text: str, encoder: TextEncoder, room: int) -> list[Span]:
    spans = list(split(text, encoder, room))
    assert all(len(encoder.encode([span.of(text)])[0].ids) <= room for span in spans)
    covered, at = [], 0
    for span in spans:
        assert span.end > span.start >= 0
        covered.append(text[at : span.start])  # what lies between the windows, if anything does
        at = max(at, span.end)
    covered.append(text[at:])
    for gap in filter(str.strip, covered):  # nothing to read, or characters too large for the room
        assert all(len(ids) > room or not ids for ids in (e.ids for e in encoder.encode(list(gap)))), gap
    assert [span.start for span in spans] == sorted({span.start for span in spans})
    assert [span.end for span in spans] == sorted({span.end for span in spans})
    return spans


@pytest.mark.parametrize("room", [8, 50, 120, 400])
@pytest.mark.parametrize("name", ["wordpiece", "unigram"])
def test_windows_of_prose(name: str, room: int, request: pytest.FixtureRequest) -> None:
    encoder = request.getfixturevalue(name)
    spans = check(PROSE, encoder, room)
    assert len(spans) > 1
    total = len(encoder.encode([PROSE])[0].ids)
    assert len(spans) <= 3 + 2 * total / room
    for before, after in itertools.pairwise(spans):
        shared = encoder.encode([PROSE[after.start : before.end]])[0].ids
        assert len(shared) <= room // 2
        assert shared or room < 50


def test_windows_begin_and_end_between_words(wordpiece: TextEncoder) -> None:
    for span in check(PROSE, wordpiece, 50):
        assert span.start == 0 or PROSE[span.start - 1].isspace()
        assert span.end >= len(PROSE.rstrip()) or PROSE[span.end].isspace() or PROSE[span.end] in ",."


def test_a_passage_that_fits_is_one_window_and_whole(wordpiece: TextEncoder) -> None:
    text = "  The fee is ten percent. \n"
    assert list(split_all([text, PROSE[:200]], wordpiece, 100)) == [
        (0, Span(0, len(text))),
        (1, Span(0, 200)),
    ]
    exact = "fee " * 100
    assert list(split_all([exact], wordpiece, 100)) == [(0, Span(0, len(exact)))]
    assert len(list(split_all([exact + "fee"], wordpiece, 100))) == 2


def test_windows_of_several_texts_are_those_of_each(wordpiece: TextEncoder) -> None:
    texts = ["short", PROSE, "", " \u200b", PROSE[:700], "fee " * 90]
    together = list(split_all(texts, wordpiece, 80))
    expected = []
    for index, text in enumerate(texts):
        fits = 0 < len(wordpiece.encode([text])[0].ids) <= 80
        spans = [Span(0, len(text))] if fits else list(split(text, wordpiece, 80))
        expected += [(index, span) for span in spans]
    assert together == expected


def test_the_decisive_sentence_is_whole_in_a_window(wordpiece: TextEncoder) -> None:
    # The overlap exists so that a sentence that crosses a border stands whole in the next window.
    needle = "Pets are allowed on the second floor only."
    for place in range(100, 1_500, 37):
        at = PROSE.index(" ", place)
        text = f"{PROSE[:at]} {needle}{PROSE[at:]}"
        assert any(needle in span.of(text) for span in split(text, wordpiece, 60))


STRANGE = [
    "",
    " \n\t" * 2_000,
    "\u200b" * 3_000,
    "x" * 9_000,
    "\u6f22\u5b57" * 2_000,
    "\U0001f600" * 2_000,
    "e\u0301" * 3_000,
    "\ufdfa" * 500,  # one character that normalises to eighteen
    "\ud800" * 3_000,
    "a\0b " * 1_000,
    "." * 5_000,
    "a " * 100 + "y" * 7_000 + " b" * 100,
    "word" + " " * 9_000 + "word",
    "1,234.56%" * 800,
]


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize("name", ["wordpiece", "unigram"])
@pytest.mark.parametrize("room", [8, 60])
def test_strange_texts(text: str, name: str, room: int, request: pytest.FixtureRequest) -> None:
    check(text, request.getfixturevalue(name), room)


@settings(max_examples=150)
@given(st.text(st.characters(codec=None), max_size=800), st.integers(8, 40))
def test_any_text(text: str, room: int) -> None:
    check(text, TextEncoder(MODELS / "deberta-nli" / "tokenizer.json"), room)
    check(text, TextEncoder(MODELS / "bert-relevance" / "tokenizer.json"), room)


@pytest.mark.parametrize(
    "unit", ["The fee is ten percent of the price. ", "\u6f22", "x", "a " * 50 + "y" * 500]
)
def test_the_work_grows_with_the_text(unit: str, wordpiece: TextEncoder) -> None:
    def work(characters: int) -> tuple[int, int]:
        counting = Counting(wordpiece)
        text = (unit * (characters // len(unit) + 1))[:characters]
        windows = sum(1 for _ in split(text, counting, 100))
        return counting.characters, windows

    (small, few), (large, many) = work(20_000), work(80_000)
    assert large <= 4.5 * small
    assert many <= 4.5 * few + 2


def test_windows_come_lazily(wordpiece: TextEncoder) -> None:
    counting = Counting(wordpiece)
    text = PROSE * 400  # a megabyte
    windows = split(text, counting, 400)
    next(windows)
    assert counting.characters < 20_000
