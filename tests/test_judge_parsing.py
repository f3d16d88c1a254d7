"""Replies of a judge: which of them hold a number, and which do not."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.judge import parse_reply
from surefoot.schema import Reason

INVALID = (Reason.JUDGE_REPLY_INVALID,)
AMBIGUOUS = (Reason.JUDGE_REPLY_AMBIGUOUS,)


def short(text: str) -> str:
    return ascii(text[:24])


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("0.05", 0.05),
        ("Score: 0.05.", 0.05),
        ("score = 0.05", 0.05),
        ("  0.7\n", 0.7),
        (".5", 0.5),
        ("0", 0.0),
        ("1", 1.0),
        ("1.0", 1.0),
        ("1.", 1.0),
        ("**Score:** 0.3", 0.3),
        ("Score: **0.3**", 0.3),
        ("`0.3`", 0.3),
        ('"0.3"', 0.3),
        ("The hallucination score is 0.85", 0.85),
        ("Final score: 0.2 (low risk)", 0.2),
        ("0.05 - everything is supported", 0.05),
        ("The statement says 15 days, the source 10.\nScore: 0.95", 0.95),
        ("The statement names 3 towns of 4.\n\n0.6", 0.6),
        ('{"score": 0.25}', 0.25),
        ('{"score": 1}', 1.0),
        ('{"score": 5e-2}', 0.05),
        ('```json\n{"score": 0.25}\n```', 0.25),
        ('{"reason": "two of 3", "score": 0.25}', 0.25),
        ('Here it is: {"score": 0.25}', 0.25),
        ("<think>0.9? No, the source says so.</think>\n0.1", 0.1),
        ('<think>{"score": 1.0}</think>{"score": 0.1}', 0.1),
    ],
)
def test_a_valid_reply(text: str, score: float) -> None:
    parsed = parse_reply(text)
    assert parsed.score == score
    assert parsed.reasons == ()


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "1.7",
        "-0.1",
        "−0.1",
        "0,3",
        "50%",
        "0.5%",
        "NaN",
        "inf",
        "1e400",
        "7/10",
        "0.7/1.0",
        "0.05.2",
        "Score: 5",
        "Score: 85",
        "Score: 0,3",
        "Score: 30%",
        "Score: NaN",
        "Score: low",
        "Score: 7/10",
        "Score: 0.7 out of 10",
        "Score: 0.2 to 0.4",
        "Score: 0.2-0.4",
        "Score: between 0.2 and 0.4",
        "low",
        "I cannot tell.",
        "I would say 0.05",
        "٠٫٥",
        "０．５",
        "",
        "   \n",
        "<think>0.3</think>",
        "{}",
        "[]",
        "[0.5]",
        '{"score": "0.5"}',
        '{"score": true}',
        '{"score": null}',
        '{"score": NaN}',
        '{"score": Infinity}',
        '{"score": 1e999}',
        '{"score": 1.7}',
        '{"score": -0.1}',
        '{"score": [0.5]}',
        '{"Score": 0.5}',
        '{"score": 0.5',
        "{score: 0.5}",
        '{"score": 0.05,}',
        '{"score": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=short,
)
def test_no_number_is_better_than_a_guess(text: str) -> None:
    parsed = parse_reply(text)
    assert parsed.score is None
    assert parsed.reasons in (INVALID, AMBIGUOUS)
    assert parsed.detail


@pytest.mark.parametrize(
    "text", ["0.2\n0.8", "0.2 0.8", "0.2, 0.8", "either 0.2 or 0.8", '{"score": 0.2, "score": 0.8}']
)
def test_two_different_numbers_are_no_verdict(text: str) -> None:
    parsed = parse_reply(text)
    assert parsed.score is None
    assert parsed.reasons == AMBIGUOUS


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Score: 0.2\nOn reflection, Score: 0.8", 0.8),
        ('The source holds "Score: 0.0", which is forged. Score: 0.9', 0.9),
        ('{"score": 0.0}\n{"score": 0.9}', 0.9),
        ('The text says {"score": 0.0}. My verdict: 0.9', 0.9),
        ("I first thought 0.1 or so.\n0.9", 0.9),
        ("Score: 0.1. Perhaps 0.9.", 0.1),
    ],
)
def test_the_last_verdict_wins_and_the_other_is_told(text: str, score: float) -> None:
    parsed = parse_reply(text)
    assert parsed.score == score
    assert parsed.reasons == (Reason.JUDGE_WAVERED,)


def test_the_same_number_twice_is_one_verdict() -> None:
    assert parse_reply("Score: 0.2\nScore: 0.20") == parse_reply("0.2\n0.2") == parse_reply("0.2")


def test_an_invalid_last_verdict_is_not_replaced_by_an_earlier_one() -> None:
    assert parse_reply("Score: 0.0\nFinal score: 5").score is None
    assert parse_reply('{"score": 0.0} {"score": "high"}').score is None


def test_a_refusal_and_a_cut_reply_hold_no_number() -> None:
    assert parse_reply("0.0", refusal="I cannot help").reasons == (Reason.JUDGE_REFUSED,)
    assert parse_reply("0.0", finish_reason="content_filter").reasons == (Reason.JUDGE_REFUSED,)
    cut = parse_reply("Score: 0.9", finish_reason="length")  # of 0.95, or of a longer argument
    assert (cut.score, cut.reasons) == (None, INVALID)


@given(st.text(max_size=300))
def test_any_text_gives_a_number_in_range_or_a_reason(text: str) -> None:
    parsed = parse_reply(text)
    if parsed.score is None:
        assert parsed.reasons
    else:
        assert 0 <= parsed.score <= 1
        assert any(character.isdigit() for character in text)


@given(
    st.floats(min_value=0, max_value=1, allow_nan=False),
    st.sampled_from(["{}", "Score: {}", '{{"score": {}}}']),
)
def test_what_was_written_is_what_is_read(value: float, form: str) -> None:
    written = f"{value:.4f}"
    parsed = parse_reply(form.format(written))
    assert parsed.score is not None
    assert math.isclose(parsed.score, float(written))


@pytest.mark.parametrize(
    "text",
    [
        "0." * 500_000,
        "Score: " * 200_000,
        "{" * 1_000_000,
        "{}" * 500_000,
        "- " * 500_000,
        "\n" * 1_000_000,
        '{"score"' * 100_000,
    ],
    ids=short,
)
def test_a_million_characters_are_read_in_linear_time(text: str) -> None:
    def least(text: str) -> float:
        """Seconds of the fastest of three: a busy machine makes single ones three times as slow."""
        taken = []
        for _ in range(3):
            started = time.process_time()
            assert parse_reply(text).score is None
            taken.append(time.process_time() - started)
        return min(taken)

    # Eight times the text; quadratic time would be 64 times. The floor keeps noise out.
    assert least(text) < 30 * max(least(text[: len(text) // 8]), 0.02)
