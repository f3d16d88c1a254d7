"""Sources in every shape that callers have them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from surefoot.errors import InputError
from surefoot.schema import Source
from surefoot.sources import coerce_sources


def test_shapes() -> None:
    items: list[Any] = ["a text", None, {"text": "b", "id": "x", "title": "T", "page": 3}, Source("y", "c")]
    before = copy.deepcopy(items)
    records, duplicated = coerce_sources(items)
    assert [record.id for record in records] == ["1", "2", "x", "y"]
    assert [record.text for record in records] == ["a text", "", "b", "c"]
    assert records[2].title == "T"
    assert records[2].metadata == {"page": 3}
    assert not duplicated
    assert items == before


def test_text_is_taken_from_the_widest_field() -> None:
    wide = {"text": "t", "chunk_text": "c", "expanded_context": "e"}
    assert coerce_sources([wide])[0][0].text == "e"
    assert coerce_sources([{**wide, "expanded_context": ""}])[0][0].text == "c"
    assert coerce_sources([{**wide, "expanded_context": None, "chunk_text": " "}])[0][0].text == "t"


def test_ids_may_be_numbers_and_have_other_names() -> None:
    records, _ = coerce_sources([{"text": "a", "chunk_id": 7}, {"text": "b", "doc_id": "d"}])
    assert [record.id for record in records] == ["7", "d"]


def test_duplicate_ids_are_told_apart() -> None:
    records, duplicated = coerce_sources(
        [{"id": "a", "text": "1"}, {"id": "a", "text": "2"}, {"id": "a#2", "text": "3"}]
    )
    assert duplicated
    assert len({record.id for record in records}) == 3
    assert [record.text for record in records] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("one string", "must be a list"),
        ({"text": "a"}, "must be a list"),
        ([3], r"sources\[0\] must be"),
        (["a", {"text": 5}], r"sources\[1\]\.text must be a string, not int"),
        ([{"id": "a"}], r"sources\[0\] has no text"),
        ([{"text": "a", "id": 1.5}], r"sources\[0\]\.id"),
        ([{"text": "a", "title": []}], r"sources\[0\]\.title"),
        ([{"text": "a", "metadata": 1}], r"sources\[0\]\.metadata"),
        ([b"bytes"], "not bytes"),
        (None, "must be a list"),
        (7, "must be a list"),
    ],
)
def test_wrong_types_are_named(bad: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        coerce_sources(bad)


def test_many_chunks_of_one_document_keep_distinct_ids() -> None:
    records, duplicated = coerce_sources([{"text": str(i), "doc_id": "d"} for i in range(5_000)])
    assert duplicated
    assert len({record.id for record in records}) == 5_000
