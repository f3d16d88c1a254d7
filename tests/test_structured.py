"""Records and tables in words, with the span of each value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.evidence.structured import read_json, read_tables
from surefoot.sources import coerce_sources

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def said(text: str) -> list[str]:
    return [reading.text for reading in read_json(text) or []]


def test_keys_lead_to_their_value() -> None:
    record = {
        "name": "Opal",
        "hours": {"Monday": "9:00"},
        "tags": ["bar", "grill"],
        "RestaurantsTakeOut": False,
    }
    assert said(json.dumps(record)) == [
        "name: Opal.",
        "hours Monday: 9:00.",
        "tags: bar.",
        "tags: grill.",
        "Restaurants Take Out: no.",
    ]


def test_nothing_is_said_to_be_none() -> None:
    assert said('{"a_b": null, "c": "", "iOS": "  "}') == ["a b: none.", "c: none.", "iOS: none."]


def test_places_in_a_list_are_no_numbers_of_the_record() -> None:
    assert said('[{"stars": 4.0}, {"stars": 1.0}]') == ["stars: 4.0.", "stars: 1.0."]


def test_prose_in_a_record_is_read_by_sentences() -> None:
    prose = 'The soup was cold when it came.\nNobody said "sorry" about it. ' * 3
    text = json.dumps({"review": prose})
    readings = read_json(text) or []
    assert len(readings) == 6
    assert readings[0].text == "The soup was cold when it came."
    assert text[readings[0].start : readings[0].end] == "The soup was cold when it came."
    assert text[readings[1].start : readings[1].end] == 'Nobody said \\"sorry\\" about it.'


def test_one_record_a_line() -> None:
    text = '{"city": "Bonn"}\n\n{"city": "Ulm"}\n'
    assert said(text) == ["city: Bonn.", "city: Ulm."]
    assert [text[r.start : r.end] for r in read_json(text) or []] == ['"city": "Bonn"', '"city": "Ulm"']


@pytest.mark.parametrize(
    "text", ["", "Hello", "{not json}", '"just a string"', "17", "[1, 2", "[" * 100_000, "{}x"]
)
def test_what_is_no_json_is_prose(text: str) -> None:
    assert read_json(text) is None


@settings(max_examples=150)
@given(VALUES, st.booleans())
def test_any_record(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    readings = read_json(text)
    if not isinstance(value, (dict, list)):
        assert readings is None
        return
    assert readings is not None
    at = 0
    for reading in readings:
        assert at <= reading.start < reading.end <= len(text)
        at = reading.end
        assert reading.text.strip()


@settings(max_examples=100)
@given(st.text(alphabet=st.sampled_from('|-: \n\rab{}[]",\\')))
def test_any_text(text: str) -> None:
    read_json(text)
    for start, reading in read_tables(text).items():
        assert start == reading.start < reading.end <= len(text)


def test_rows_of_a_table_name_their_columns() -> None:
    text = "intro | not a table\n\n| Plan | Price |\n|:--|--:|\n| Basic | 5 |\n| Pro | |\n\n| a | b |\n"
    rows = read_tables(text)
    assert [row.text for row in rows.values()] == ["Plan: Basic; Price: 5.", "Plan: Pro."]
    assert [text[row.start : row.end] for row in rows.values()] == ["Basic | 5", "Pro"]


def test_a_record_may_be_handed_in_as_it_is() -> None:
    record = {"city": "Bonn", "open": True}
    (source,), _ = coerce_sources([{"id": "r", "text": record}])
    assert json.loads(source.text) == record
    assert said(source.text) == ["city: Bonn.", "open: yes."]
