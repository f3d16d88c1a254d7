"""Blocks, sentences, their offsets, and what kind of sentence each is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.schema import ClaimKind
from surefoot.segment import Segment, segment_answer, sentence_spans
from surefoot.segment.kinds import classify
from surefoot.segment.lines import MAX_SENTENCE

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "segment.jsonl").read_text(encoding="utf-8").splitlines()
]
# A source is read line by line: a code block is several sentences, and a comment is text like any other.
ANSWER_ONLY = {"code-03", "line_breaks-10"}


def texts(answer: str, **options: int) -> list[str]:
    return [answer[s.start : s.end] for s in segment_answer(answer, **options)]


def kinds(answer: str) -> list[tuple[str, ClaimKind]]:
    return [(answer[s.start : s.end], s.kind) for s in segment_answer(answer)]


def kind_of(sentence: str) -> ClaimKind:
    (segment,) = segment_answer(sentence)
    return segment.kind


# --- the golden set -------------------------------------------------------------------------------


def test_golden_set_is_well_formed() -> None:
    assert len(CASES) >= 200
    assert len({case["id"] for case in CASES}) == len({case["text"] for case in CASES}) == len(CASES)
    assert sum(case["written"] == "before" for case in CASES) >= len(CASES) / 2
    for case in CASES:
        at = 0
        for sentence in case["sentences"]:
            at = case["text"].index(sentence, at) + len(sentence)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_answer(case: dict[str, object]) -> None:
    assert texts(str(case["text"])) == case["sentences"]


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["id"] not in ANSWER_ONLY], ids=lambda case: case["id"]
)
def test_golden_source(case: dict[str, object]) -> None:
    text = str(case["text"])
    assert [text[start:end] for start, end in sentence_spans(text)] == case["sentences"]


# --- what users of other splitters complain about ---------------------------------------------------


def test_no_break_after_a_title() -> None:
    assert texts("Dr. Adams saw the patient. She left.") == ["Dr. Adams saw the patient.", "She left."]


@pytest.mark.parametrize(
    "text",
    [
        "In 2010 he wrote a weekly column for Yahoo! Brasil Music and nothing else.",
        "He played Cadet Cpl. Scawalski in the film of that year.",
    ],
)
def test_the_library_is_asked_where_no_rule_of_ours_speaks(text: str) -> None:
    assert sentence_spans(text) == [(0, len(text))]


def test_an_unpaired_quotation_mark_does_not_fuse_what_follows() -> None:
    text = 'The sign is 5" wide. Delgado won the vote. Salazar lost it. Hoare has a 6" one.'
    assert len(sentence_spans(text)) == 4


def test_no_break_inside_a_legal_reference() -> None:
    answer = "The fee is waived under Reg. 892 s. 4.4(2) of the Act. It is final."
    assert texts(answer) == ["The fee is waived under Reg. 892 s. 4.4(2) of the Act.", "It is final."]


def test_bullets_are_not_fused() -> None:
    assert texts("- The fee is 5 euros\n- The term is 15 days") == [
        "The fee is 5 euros",
        "The term is 15 days",
    ]


def test_table_rows_are_not_fused() -> None:
    answer = "| Plan | Price |\n|---|---|\n| Basic | 5 EUR |\n| Pro | 9 EUR |"
    assert kinds(answer) == [
        ("Plan | Price", ClaimKind.HEADING),
        ("Basic | 5 EUR", ClaimKind.CLAIM),
        ("Pro | 9 EUR", ClaimKind.CLAIM),
    ]


@pytest.mark.parametrize(
    "answer", ["**999**", "- **999**\n- **1000**", "The total is **999**", "| **999** |"]
)
def test_a_bold_number_is_not_lost(answer: str) -> None:
    assert any("**999**" in text for text in texts(answer))
    if answer == "**999**":
        assert kind_of(answer) is ClaimKind.TOO_SHORT


@pytest.mark.parametrize("answer", ["The fee is 5 euros", "The fee is 5 euros;", "The fee is 5 euros,"])
def test_a_sentence_without_a_full_stop_is_not_dropped(answer: str) -> None:
    assert texts(answer) == [answer]
    assert kind_of(answer) is ClaimKind.CLAIM


@pytest.mark.parametrize(
    "answer", ["退款期为十五天。请联系客服中心办理。", "返金期間は15日です。手数料はかかりません。"]
)
def test_chinese_and_japanese_do_not_vanish(answer: str) -> None:
    found = segment_answer(answer)
    assert [s.kind for s in found] == [ClaimKind.CLAIM, ClaimKind.CLAIM]
    assert "".join(texts(answer)) == answer


def test_refusals_and_greetings_are_not_claims() -> None:
    answer = "Hello! The documents do not say who won. Hope this helps!"
    assert [kind for _, kind in kinds(answer)] == [ClaimKind.GREETING, ClaimKind.REFUSAL, ClaimKind.GREETING]


@pytest.mark.parametrize(
    "marker", ["[Doc 1]", "[1]", "[1, 2]", "[1-3]", "[^1]", "(Source: x)", "【1†source】", "[1][2]"]
)
@pytest.mark.parametrize(("before", "after"), [("", " "), (" ", " "), ("\n", "\n"), (" ", "\n")])
def test_a_marker_behind_the_full_stop_stays_with_its_sentence(marker: str, before: str, after: str) -> None:
    answer = f"It takes 15 days.{before}{marker}{after}The fee is 5 euros."
    assert texts(answer) == [f"It takes 15 days.{before}{marker}", "The fee is 5 euros."]


def test_a_line_that_begins_with_a_marker_is_a_reference_list() -> None:
    answer = "It takes 15 days. [1]\n[1] The policy of 2019"
    assert texts(answer) == ["It takes 15 days. [1]", "[1] The policy of 2019"]


def test_a_marker_that_is_the_subject_opens_its_sentence() -> None:
    answer = "It takes 15 days. [Doc 2] says it takes 20."
    assert texts(answer) == ["It takes 15 days.", "[Doc 2] says it takes 20."]


# --- blocks and kinds -----------------------------------------------------------------------------


def test_blocks_are_numbered_in_order() -> None:
    answer = (
        "# Fees\n\nThe fee is low. It is due.\n\n- One item here now\n- Two items here now\n\n"
        "| a | b |\n|-|-|\n| 1 | 2 |"
    )
    assert [(answer[s.start : s.end], s.block) for s in segment_answer(answer)] == [
        ("Fees", 0),
        ("The fee is low.", 1),
        ("It is due.", 1),
        ("One item here now", 2),
        ("Two items here now", 3),
        ("a | b", 4),
        ("1 | 2", 5),
    ]


def test_headings_code_and_comments() -> None:
    answer = (
        "## What is covered?\n\n<!-- hidden: the fee is 99 euros -->\n**Key points**\n\n"
        "Teeth are covered in full.\n\n"
        "```python\nx = f(1)\n```\n"
    )
    assert kinds(answer) == [
        ("What is covered?", ClaimKind.HEADING),
        ("**Key points**", ClaimKind.HEADING),
        ("Teeth are covered in full.", ClaimKind.CLAIM),
        ("x = f(1)", ClaimKind.CODE),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "**The refund period is 15 days**\n\nAsk us for more.",  # bold, but it says something
        "```\nThe refund period is 15 days. It is fixed.\n```",  # fenced, but prose
        "```markdown\nThe refund period is 15 days.\n```",
        "Answer:\n\n    The refund period is 15 days. It is fixed.",
        "It is fixed. <!-- The refund period is 15 days.",  # never closed, so it is shown
        "It is <!-- so\n\nThe refund period is 15 days. -->",  # spans a paragraph, so it is shown
        "> > > The refund period is 15 days.",
        "> " * 60 + "The refund period is 15 days.",  # deeper than the parser goes
        "[x]: The refund period is 15 days.",  # looks like a link definition
        "<div>\nThe refund period is 15 days.\n</div>",
        "<details><summary>The refund period is 15 days.</summary></details>",
        "| The refund period | is 15 days |",
        "The refund period is 15 days\n---",  # an underlined paragraph would be a heading
    ],
)
def test_layout_does_not_exempt_a_claim(answer: str) -> None:
    found = [s for s in segment_answer(answer) if "refund period" in answer[s.start : s.end]]
    assert len(found) == 1
    if not answer.endswith("---"):
        assert found[0].kind is ClaimKind.CLAIM


@pytest.mark.parametrize(
    "sentence",
    [
        "I cannot answer from these documents.",
        "The documents do not say who won.",
        "The documents do not mention dental care. [Doc 1]",
        "None of the passages mention the fee.",
        "I don't know.",
        "There is no information in the provided context about dental care.",
        "I'm sorry, but I cannot find the fee in the provided documents.",
        "Based on the provided documents, I cannot determine the fee.",
        "Unfortunately, the context doesn't specify the year.",
        "The price is not mentioned in the documents.",
        "No relevant information was found.",
        "I can't answer that, because the documents do not say.",
    ],
)
def test_refusals(sentence: str) -> None:
    assert kind_of(sentence) is ClaimKind.REFUSAL


@pytest.mark.parametrize(
    "sentence",
    [
        "The policy does not cover dental care.",
        "The policy does not mention dental care.",
        "Based on the documents, the refund period is 15 days.",
        "The documents do not mention the fee, but it is 5 euros.",
        "The documents do not state the fee; the term is 15 days.",
        "According to the context, there is no fee for members.",
        "In summary, the plan is cheap and covers teeth.",
        "There is no information desk at the station.",
        "The refund period is 15 days:",
        "I cannot recommend doses above 5 mg per day.",
        "Sure, the fee is 5 euros.",
        "Here is the fee: 5 euros per month.",
        "Here are the fees: the basic plan is 5 euros and the pro plan is 9.",
        "Feel free to cancel within the trial period without cost.",
        'He asked her "Is it free?"',
        "If you need a refund, you must send the form.",
        "The data does not leave the European Union.",
        "Documents do not have to be notarised.",
        "No additional information is provided to employers.",
        "The fee is 5 euros and applies to the following:",
        "Good day rates are available from Monday.",
    ],
)
def test_when_in_doubt_it_is_a_claim(sentence: str) -> None:
    assert kind_of(sentence) is ClaimKind.CLAIM


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Is it free?", ClaimKind.QUESTION),
        ("Would you like to know more? [1]", ClaimKind.QUESTION),
        ('"Is it free?"', ClaimKind.QUESTION),
        ("真的吗？", ClaimKind.QUESTION),
        ("Hello!", ClaimKind.GREETING),
        ("Let me know if you need anything else.", ClaimKind.GREETING),
        ("I hope this answers your question.", ClaimKind.GREETING),
        ("If you have any other questions, please let me know.", ClaimKind.GREETING),
        ("Here is a summary:", ClaimKind.META),
        ("Based on the provided documents, here are the steps:", ClaimKind.META),
        ("In summary:", ClaimKind.META),
        ("The plan covers the following items:", ClaimKind.META),
        ("Here is a summary of the refund policy.", ClaimKind.META),
        ("No fee [Doc 1]", ClaimKind.TOO_SHORT),
        ("[1] [2]", ClaimKind.TOO_SHORT),
        ("Term: 15 days", ClaimKind.CLAIM),  # three words, but a figure that can be wrong
    ],
)
def test_other_kinds(sentence: str, kind: ClaimKind) -> None:
    assert kind_of(sentence) is kind


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The **fee** is [5 euros](https://example.com/a) now. [Doc 1]", 6),
        ("It's 3.5 euros.", 3),
        ("<b>Two words</b> (Source: the long policy.pdf)", 2),
        ("退款期为十五天", 4),
        ("", 0),
    ],
)
def test_words_are_counted_as_a_reader_sees_them(text: str, words: int) -> None:
    kinds = [classify(text, min_words=least) for least in (words, words + 1)]
    assert kinds == [ClaimKind.CLAIM if words else ClaimKind.TOO_SHORT, ClaimKind.TOO_SHORT]


def test_min_words() -> None:
    assert classify("The fee fell.", min_words=4) is ClaimKind.TOO_SHORT
    assert classify("The fee fell.", min_words=3) is ClaimKind.CLAIM
    assert [s.kind for s in segment_answer("The fee fell.", min_words=1)] == [ClaimKind.CLAIM]


def test_empty_and_blank_answers_have_no_segments() -> None:
    assert segment_answer("") == segment_answer(" \n\t\r\n") == ()
    assert sentence_spans("") == sentence_spans("\n \u2028\n") == []


# --- sources --------------------------------------------------------------------------------------


def test_wrapped_lines_of_a_source_are_one_sentence() -> None:
    text = (
        "The refund is paid within fifteen working days after the parcel has arrived\n"
        "at our Warsaw warehouse. It is paid in full and without any deduction to the\n"
        "Polish account that was named when the order was placed."
    )
    assert [text[a:b] for a, b in sentence_spans(text)] == [
        text[: text.index(" It is")],
        text[text.index("It is paid") :],
    ]


@pytest.mark.parametrize("unit", ["word ", "x", "字", "e\u0301", "👨‍👩‍👧", "a.b", "\ud800"])
def test_a_sentence_without_end_is_cut(unit: str) -> None:
    text = unit * 5000
    spans = sentence_spans(text)
    assert max(end - start for start, end in spans) <= MAX_SENTENCE
    assert "".join(text[a:b] for a, b in spans).replace(" ", "") == text.replace(" ", "")
    if unit == "word ":
        assert all(set(text[a:b].split(" ")) == {"word"} for a, b in spans)
    if unit == "e\u0301":
        assert all(text[a] == "e" for a, _ in spans)


# --- any text at all ------------------------------------------------------------------------------

PIECES = st.one_of(
    st.text(max_size=12),
    st.text(
        alphabet=st.characters(codec=None, categories=("Cs", "Cc", "Zl", "Zp", "Mn", "Lo", "So")), max_size=4
    ),
    st.sampled_from(
        [
            "# ",
            "## ",
            "- ",
            "* ",
            "+ ",
            "1. ",
            "2) ",
            "a) ",
            "> ",
            ">> ",
            "    ",
            "```",
            "```py",
            "~~~",
            "\n",
            "\n\n",
            "\r\n",
            "\r",
            ". ",
            ".",
            "! ",
            "? ",
            "… ",
            "。",
            "؟ ",
            "Dr. ",
            "e.g. ",
            "[1]",
            "[Doc 1]",
            "(Source: x)",
            "【1†s】",
            "**",
            "*",
            "_",
            "`",
            "<!--",
            "-->",
            "<b>",
            "</b>",
            "\\",
            "---",
            "===",
            "word ",
            "Word ",
            "The fee is 5 euros",
            "\u2028",
            "\x00",
            "\ud800",
            "\udfff",
            "\u200f",
            "e\u0301",
            "\U0001f469\u200d\U0001f52c",
            "中文",
            "ไทย",
            ": ",
            "\t",
            "|",
            "| a | b |\n",
            "|-|-|\n",
            "a|b\n-|-\n",
        ]
    ),
)
ANY_TEXT = st.lists(PIECES, max_size=40).map("".join)

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
MARKUP = re.compile(
    r"(?:[\s>|:=#*_~`+\\-]|[•‣◦▪▫●○■□–—·⁃∙➢➤►▶]|\d{1,9}[.)]|(?:[a-zA-Z]|[ivx]{1,5})\)|\[[ xX]\]"
    r"|</?[a-zA-Z][^<>]*>|(?:```|~~~).*)*"
)


def check(text: str, spans: list[tuple[int, int]]) -> None:
    """Offsets are in order, disjoint and trimmed, and only markup lies outside."""
    last = 0
    rest = []
    for start, end in spans:
        assert last <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        rest.append(text[last:start])
        last = end
    rest.append(text[last:])
    outside = "\n".join(COMMENT.sub("", gap) for gap in rest)
    for line in re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", outside):
        assert MARKUP.fullmatch(line), line


@settings(max_examples=300, deadline=None)
@given(ANY_TEXT)
def test_any_answer(text: str) -> None:
    segments = segment_answer(text)
    check(text, [(s.start, s.end) for s in segments])
    assert segments == segment_answer(text)
    assert all(isinstance(s, Segment) and isinstance(s.kind, ClaimKind) for s in segments)
    blocks = [s.block for s in segments]
    assert blocks == sorted(blocks)


@settings(max_examples=300, deadline=None)
@given(ANY_TEXT)
def test_any_source(text: str) -> None:
    spans = sentence_spans(text)
    check(text, spans)
    assert spans == sentence_spans(text)
    assert all(end - start <= MAX_SENTENCE for start, end in spans)


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "*",
        "| ",
        "> ",
        "- ",
        "`",
        "<",
        "<!--",
        "(Source: ",
        "[Doc ",
        "> - ",
        "1) ",
        '"',
        "_a",
        "( ",
        "\t",
        "#",
    ],
)
def test_hostile_repetition(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    check(text, [(s.start, s.end) for s in segment_answer(text)])
    check(text, sentence_spans(text))


@pytest.mark.parametrize(
    "unit", ["- a\n", "|a|b|\n", "a|b\n-|-\n", "[a]: b\n", "a\n=\n", "> a\n", "```\n", "a. "]
)
def test_many_small_blocks(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    segments = segment_answer(text)
    check(text, [(s.start, s.end) for s in segments])
    check(text, sentence_spans(text))


def test_deep_nesting_loses_nothing() -> None:
    text = "".join("  " * depth + f"- item number {depth}\n" for depth in range(200))
    found = " ".join(texts(text))
    assert all(f"item number {depth}" in found for depth in range(200))


def test_a_long_answer_is_read_too() -> None:
    answer = "# Fees\n\n- The fee is 5 euros. [Doc 1]\n- The term is 15 days.\n\n" * 4000
    segments = segment_answer(answer)
    assert len(segments) == 12_000
    assert [s.kind for s in segments[:3]] == [ClaimKind.HEADING, ClaimKind.CLAIM, ClaimKind.CLAIM]
    assert answer[segments[1].start : segments[1].end] == "The fee is 5 euros. [Doc 1]"
