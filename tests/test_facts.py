"""Facts: extraction, comparison, and what must hold for any text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.facts import DateValue, Fact, FactStatus, compare_facts, extract_facts
from surefoot.schema import Reason

GOLDEN = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "facts.jsonl").read_text(encoding="utf-8").splitlines()
]


def one(text: str, kind: str) -> Fact:
    facts = [f for f in extract_facts(text) if f.kind == kind]
    assert len(facts) == 1, facts
    return facts[0]


def figures(text: str) -> list[Fact]:
    return [f for f in extract_facts(text) if f.kind != "name"]


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["id"])
def test_golden(row: dict) -> None:
    check = compare_facts(row["claim"], row["evidence"])
    assert check.status == row["expect"], check
    assert sorted({str(m.kind) for m in check.mismatches}) == sorted(row["kinds"])
    assert 0 <= check.agreed <= check.total
    for mismatch in check.mismatches:
        assert row["claim"][mismatch.claim_start : mismatch.claim_end] == mismatch.claim_text
        assert mismatch.evidence_text is not None
        assert any(mismatch.evidence_text in sentence for sentence in row["evidence"])


def test_golden_is_large_enough() -> None:
    expects = [row["expect"] for row in GOLDEN]
    assert len({row["id"] for row in GOLDEN}) == len(GOLDEN) >= 180
    assert expects.count("agree") >= 60
    assert expects.count("disagree") >= 60
    assert expects.count("unrelated") >= 30


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("It cost $1,500.", 1500, "USD"),
        ("It cost $5m.", 5e6, "USD"),
        ("It cost €7.4bn.", 7.4e9, "EUR"),
        ("It cost 2.5 crore rupees.", 2.5e7, "INR"),
        ("It grew 4.1 percent.", 4.1, "%"),
        ("It grew 4.1%.", 4.1, "%"),
        ("It grew by 3 percentage points.", 3, "pp"),
        ("It grew by 25 basis points.", 25, "bp"),
        ("It took twenty-five days.", 25, "day"),
        ("It took two and a half years.", 2.5, "year"),
        ("It took half an hour.", 0.5, "hour"),
        ("They counted two hundred and six cows.", 206, ""),
        ("They counted a dozen cows.", 12, ""),
        ("They counted 1 500 cows.", 1500, ""),
        ("They counted 12,34,567 cows.", 1234567, ""),
        ("It fell to -5 °C.", -5, "°C"),
        ("It runs at 3.2 GHz.", 3.2, "GHz"),
        ("It holds 40 MW.", 40, "MW"),
        ("It rose 1·4 times.", 1.4, ""),
    ],
)
def test_values_and_units(text: str, value: float, unit: str) -> None:
    (fact,) = figures(text)
    assert fact.values[0] == pytest.approx(value)
    assert fact.unit == unit


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("They need at least 10 days.", ">="),
        ("They need 10 or more days.", ">="),
        ("They need up to 10 days.", "<="),
        ("They need no more than 10 days.", "<="),
        ("They need more than 10 days.", ">"),
        ("They need less than 10 days.", "<"),
        ("They need about 10 days.", "~"),
        ("They need 10 days.", "="),
    ],
)
def test_comparators(text: str, sign: str) -> None:
    assert one(text, "quantity").comparator == sign


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("It takes 10-15 days.", "range", (10, 15)),
        ("It takes between 10 and 15 days.", "range", (10, 15)),
        ("It takes 10 to 15 days.", "range", (10, 15)),
        ("It costs $5-10 million.", "range", (5e6, 1e7)),
        ("They won 3-2.", "score", (3, 2)),
        ("She came 3rd.", "ordinal", (3,)),
        ("See section 5.", "label", (5,)),
    ],
)
def test_kinds(text: str, kind: str, values: tuple[float, ...]) -> None:
    assert one(text, kind).values == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("on 2024-03-05", DateValue((2024, 2024), (3, 3), (5, 5))),
        ("on 5 March 2024", DateValue((2024, 2024), (3, 3), (5, 5))),
        ("on March 5, 2024", DateValue((2024, 2024), (3, 3), (5, 5))),
        ("in March 2024", DateValue((2024, 2024), (3, 3))),
        ("in Q3 2024", DateValue((2024, 2024), (7, 9))),
        ("in the third quarter of 2024", DateValue((2024, 2024), (7, 9))),
        ("in the 1990s", DateValue((1990, 1999))),
        ("in 2024", DateValue((2024, 2024))),
        ("in 1927-1941", DateValue((1927, 1941))),
        ("on Tuesday", DateValue(weekday=1)),
        ("at 9 a.m.", DateValue(minutes=(540,))),
        ("at 14:00", DateValue(minutes=(840,))),
    ],
)
def test_dates(text: str, date: DateValue) -> None:
    (fact,) = figures(f"It happened {text}")
    assert fact.dates == (date,)


def test_ambiguous_slashed_date_keeps_both_readings() -> None:
    (fact,) = figures("It was signed on 3/5/2024.")
    assert {(d.months, d.days) for d in fact.dates} == {((3, 3), (5, 5)), ((5, 5), (3, 3))}


@pytest.mark.parametrize(
    "text",
    [
        "The H1N1 virus spread.",
        "Infection with COVID-19 rose.",
        "See rule 4.4(2) there.",
        "She may march on.",
    ],
)
def test_identifiers_and_common_words_are_no_numbers_or_dates(text: str) -> None:
    assert [f for f in figures(text) if f.kind != "label"] == []


def test_names() -> None:
    names = [
        f.words
        for f in extract_facts("Yesterday President Barack Obama met Mr. Smith of the WHO.")
        if f.kind == "name"
    ]
    assert names == [("barack", "obama"), ("smith",), ("who",)]


def test_title_case_yields_no_names() -> None:
    assert [f for f in extract_facts("Why The Market Fell On Wall Street") if f.kind == "name"] == []


def test_every_mismatch_is_reported() -> None:
    check = compare_facts(
        "The loan of $3 million runs for 7 years.", ["The loan of $2 million runs for 5 years."]
    )
    assert [(m.claim_text, m.evidence_text) for m in check.mismatches] == [
        ("$3 million", "$2 million"),
        ("7 years", "5 years"),
    ]
    assert (check.agreed, check.total) == (0, 2)
    assert {m.kind for m in check.mismatches} == {Reason.NUMBER_MISMATCH}


def test_order_of_evidence_does_not_change_the_status() -> None:
    claim = "The notice period is 15 days."
    sentences = [
        "Refunds for returned goods take 15 days.",
        "The notice period is ten days.",
        "Staff are friendly.",
    ]
    assert {compare_facts(claim, sentences).status, compare_facts(claim, sentences[::-1]).status} == {
        FactStatus.DISAGREE
    }


def test_the_right_value_anywhere_on_topic_wins() -> None:
    check = compare_facts(
        "The bridge is 345 metres long.",
        ["The old bridge is 300 metres long.", "The bridge is 345 metres long today."],
    )
    assert check.status is FactStatus.AGREE


@pytest.mark.parametrize("claim", ["", " \n"])
def test_empty_claim(claim: str) -> None:
    assert compare_facts(claim, ["It costs $5."]).status is FactStatus.UNRELATED


FRAGMENTS = st.sampled_from(
    [
        *[
            "1,500",
            "1.5",
            "15",
            "ten",
            "million",
            "bn",
            "%",
            "$",
            "€",
            "£",
            "percent",
            "-",
            "–",
            "to",
            "and",
            "from",
            "between",
            "not",
            "n't",
            "no",
            "never",
            "without",
            "March",
        ],
        *[
            "May",
            "5th",
            "2024",
            "1990s",
            "9",
            "a.m.",
            "14:00",
            "3/5/2024",
            "2024-03-05",
            "half",
            "a",
            "third",
            "of",
            "quarter",
            "dozen",
            "days",
            "km/h",
            "°C",
        ],
        *[
            "Barack",
            "Obama",
            "U.S.",
            "WHO",
            "H1N1",
            "COVID-19",
            ",",
            ".",
            ";",
            "(",
            ")",
            "/",
            ":",
            "·",
            "'",
            "section",
            "12",
            "won",
            "3-2",
            "at",
            "least",
            "more",
            "than",
            "or",
        ],
        *[
            "\u0660\u0661",
            "\ud800",
            "\x00",
            "²",
            "\u00a0",
            "\u2009",
            "1 500",
            "A paid 5",
            "prohibited",
            "open",
        ],
    ]
)
TEXT = st.one_of(
    st.text(max_size=200),
    st.lists(FRAGMENTS, max_size=30).map(" ".join),
    st.lists(FRAGMENTS, max_size=30).map("".join),
)


@settings(max_examples=400, deadline=None)
@given(TEXT)
def test_spans_are_exact_and_ordered(text: str) -> None:
    facts = extract_facts(text)
    assert all(text[f.start : f.end] == f.text and f.text.strip() for f in facts)
    assert [(f.start, f.end) for f in facts] == sorted((f.start, f.end) for f in facts)
    solid = [f for f in facts if f.kind != "name"]
    assert all(a.end <= b.start for a, b in pairwise(solid))


@settings(max_examples=400, deadline=None)
@given(TEXT)
def test_a_text_never_disagrees_with_itself(text: str) -> None:
    assert compare_facts(text, [text]).status is not FactStatus.DISAGREE
    # Not the same string, so that the whole comparison runs.
    assert compare_facts(text, [text + " "]).status is not FactStatus.DISAGREE


@settings(max_examples=300, deadline=None)
@given(TEXT, st.lists(TEXT, max_size=3))
def test_comparison_is_total_and_deterministic(claim: str, sentences: list[str]) -> None:
    check = compare_facts(claim, sentences)
    assert check == compare_facts(claim, list(sentences))
    assert (check.status is FactStatus.DISAGREE) == bool(check.mismatches)
    assert 0 <= check.agreed <= check.total
    assert all(claim[m.claim_start : m.claim_end] == m.claim_text for m in check.mismatches)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 10**9), st.integers(2, 10**9))
def test_two_different_counts_disagree_unless_one_may_be_a_rounding(a: int, b: int) -> None:
    check = compare_facts(f"The archive holds {a:,} letters.", [f"The archive holds {b} letters."])
    if a == b:
        assert check.status is FactStatus.AGREE
    elif a % 100 or abs(a - b) > 0.5 * a:
        assert check.status is FactStatus.DISAGREE
    else:
        assert check.status is not FactStatus.AGREE


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "1,",
        "1.",
        "1 ",
        "12 and ",
        "a",
        "A",
        "twenty ",
        "$",
        "-",
        "1/",
        "not ",
        "May 5 ",
        "in 2024 ",
        "1:1",
        "\ud800",
        "A. ",
    ],
)
def test_long_repetitions_finish(unit: str) -> None:
    # A quadratic scan of this length takes minutes in Python, so it shows; no time is asserted.
    text = unit * (60_000 // len(unit))
    facts = extract_facts(text)
    assert all(text[f.start : f.end] == f.text for f in facts)
    assert compare_facts("It took 5 days in 2023.", [text]).status is not FactStatus.AGREE
