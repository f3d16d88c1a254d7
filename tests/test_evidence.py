"""Selection of evidence on the bundled lexicon."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.evidence.index import EvidenceIndex, _blocks
from surefoot.evidence.lexicon import load_lexicon
from surefoot.inference.text import TextEncoder
from surefoot.models.manifest import bundled
from surefoot.schema import Source

ENCODER = TextEncoder(bundled("verify").tokenizer_path)

POLICY = (
    "Goods may be returned within ten days of delivery. Opened items cost a fee of five percent. "
    "Gift cards are final."
)
HOURS = "The office is open from nine to five. It is closed on public holidays. Parking is free for visitors."


def index_of(*texts: str) -> EvidenceIndex:
    return EvidenceIndex([Source(str(i + 1), text) for i, text in enumerate(texts)], load_lexicon())


def test_the_sentence_that_speaks_of_it_comes_first() -> None:
    ranked = index_of(POLICY, HOURS).rank("A five percent fee applies to opened items.", limit=3)
    assert ranked[0].sentence.text == "Opened items cost a fee of five percent."
    assert ranked[0].overlap > 0.5 > ranked[2].overlap


def test_static_vectors_find_what_shares_no_word() -> None:
    index = index_of("The physician examined the child.", "The lorry crossed the bridge.")
    assert index.rank("A doctor saw a kid.", limit=1)[0].sentence.text == "The physician examined the child."


def test_offsets_are_exact() -> None:
    sources = [Source("1", POLICY), Source("2", "é\U0001f600 " + HOURS)]
    for item in EvidenceIndex(sources, load_lexicon()).rank("The office is closed on holidays.", limit=10):
        sentence = item.sentence
        assert sources[sentence.source].text[sentence.start : sentence.end] == sentence.text


@settings(max_examples=60)
@given(st.lists(st.text(max_size=200), max_size=5), st.text(max_size=60))
def test_any_text_has_exact_offsets(texts: list[str], claim: str) -> None:
    index = index_of(*texts)
    for item in index.rank(claim, limit=20):
        sentence = item.sentence
        assert texts[sentence.source][sentence.start : sentence.end] == index.shown(sentence) != ""
        assert 0.0 <= item.overlap <= 1.0


@settings(max_examples=25)
@given(st.permutations([POLICY, HOURS, "Refunds are paid within five days.", POLICY + " " + HOURS]))
def test_the_order_of_sources_changes_nothing(texts: list[str]) -> None:
    claim = "Refunds for opened items are paid within five days on holidays."

    def premises(*given: str) -> list[str]:
        index = index_of(*given)
        ranked = index.rank(claim, limit=6)
        joined = index.joined(ranked, ENCODER, 60)
        assert joined is not None
        return [joined.text]

    assert premises(*texts) == premises(*sorted(texts))


def test_many_sources_are_narrowed_to_the_right_one() -> None:
    rng = random.Random(0)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda"]
    noise = [" ".join(rng.choices(words, k=80)) + "." for _ in range(300)]
    noise[217] += " The refund period is ten days."
    ranked = index_of(*noise).rank("Refunds are possible for a period of ten days.", limit=3)
    assert ranked[0].sentence.source == 217


def test_a_claim_that_shares_no_word_with_many_sources_has_no_evidence() -> None:
    assert index_of(*["alpha beta gamma."] * 60).rank("Refunds take ten days.", limit=3) == []


def test_only_limits_the_sources() -> None:
    index = index_of(POLICY, HOURS)
    ranked = index.rank("Opened items cost a fee.", limit=9, only={"2"})
    assert ranked
    assert {item.sentence.source for item in ranked} == {1}
    assert index.rank("anything", limit=9, only=set()) == []


def test_joined_sentences_stand_in_reading_order_within_the_room() -> None:
    index = index_of(POLICY)
    ranked = index.rank("Gift cards are final and opened items cost a fee.", limit=2)
    joined = index.joined(ranked, ENCODER, 100)
    assert joined is not None
    assert joined.text == "Opened items cost a fee of five percent. Gift cards are final."
    short = index.joined(ranked, ENCODER, 12)
    assert short is not None
    assert len(short.parts) == 1
    assert index.joined(ranked, ENCODER, 2) is None


def test_the_window_holds_the_neighbours() -> None:
    index = index_of(POLICY)
    best = index.rank("Opened items cost a fee.", limit=1)[0]
    window = index.window(best, "Opened items cost a fee.", ENCODER, 200)
    assert window is not None
    assert window.text == POLICY
    narrow = index.window(best, "Opened items cost a fee.", ENCODER, 12)
    assert narrow is not None
    assert narrow.text == best.sentence.text


def test_windows_cover_every_sentence_and_overlap() -> None:
    text = " ".join(f"Sentence number {i} says something about topic {i % 7}." for i in range(80))
    windows = list(index_of(text).windows("topic 3", ENCODER, 100))
    covered = {(p.sentence.start, p.sentence.end) for w in windows for p in w.parts}
    assert "".join(text[a:b] for a, b in sorted(covered)).replace(" ", "") == text.replace(" ", "")
    assert all(count <= 100 for count in ENCODER.count([window.text for window in windows]))
    # Each window begins before the one before it ends, so that no sentence stands at an edge only.
    assert len(windows) > 3
    for a, b in pairwise(windows):
        assert b.parts[0].sentence.start <= a.parts[-1].sentence.start


def test_an_endless_sentence_is_read_in_pieces() -> None:
    text = "word " * 3000 + "the refund period is ten days " + "word " * 3000
    ranked = index_of(text).rank("The refund period is ten days.", limit=2)
    assert "refund period is ten days" in ranked[0].sentence.text
    assert ENCODER.count([ranked[0].sentence.text])[0] <= 200


def test_duplicates_are_one_piece_of_evidence() -> None:
    ranked = index_of(POLICY, POLICY, POLICY).rank("Gift cards are final.", limit=9)
    assert len(ranked) == 3


@pytest.mark.parametrize(
    "claim", ["The office is open from nine to five.", "the “office” is open from nine to FIVE"]
)
def test_verbatim_is_found(claim: str) -> None:
    index = index_of(HOURS)
    assert index.verbatim(claim, index.rank(claim, limit=3)) is not None


@pytest.mark.parametrize(
    "claim",
    [
        "The office is open.",  # part of a sentence
        "It is closed.",
        "The office is open from nine to six.",
        "Parking is free.",
        "The office is open from -nine to five?",
    ],
)
def test_parts_and_near_misses_are_not_verbatim(claim: str) -> None:
    index = index_of(HOURS, "It is not true that the office is open from nine to six.")
    assert index.verbatim(claim, index.rank(claim, limit=9)) is None


@settings(max_examples=100)
@given(st.text(alphabet="ab \n.", max_size=4000))
def test_blocks_cover_the_text_and_are_bounded(text: str) -> None:
    blocks = _blocks(0, text)
    assert "".join(text[b.start : b.end] for b in blocks).split() == text.split() or not text.strip()
    assert all(b.end - b.start <= 1500 for b in blocks)
    assert all(a.end <= b.start for a, b in pairwise(blocks))


def test_signs_and_questions_are_not_verbatim() -> None:
    index = index_of("The balance of the fund moved by 5 percent. No refunds are given after ten days.")
    for claim in ("The balance of the fund moved by -5 percent.", "No, refunds are given after ten days."):
        assert index.verbatim(claim, index.rank(claim, limit=9)) is None


def test_copies_of_a_passage_do_not_crowd_out_the_rest() -> None:
    # Each copy holds every word of the claim, the sentence that says it lacks one: copies come first.
    copy = "Refunds exist of late. Goods need the van. Delivery is slow. Within ten days it ends. A slip."
    wanted = "Refunds of goods within ten days need the slip."
    index = index_of(*[copy] * 40, wanted)
    ranked = index.rank("Refunds of goods need the delivery slip within ten days.", limit=9)
    assert wanted in {item.sentence.text for item in ranked}


def test_the_same_sentence_in_two_sources_has_one_window_in_any_order() -> None:
    texts = [
        "Gift cards are final. They are never refunded.",
        "Gift cards are final. Ask at the desk for help.",
    ]

    def window(given: list[str]) -> str:
        index = index_of(*given)
        best = index.rank("Gift cards are final.", limit=1)[0]
        premise = index.window(best, "Gift cards are final.", ENCODER, 100)
        assert premise is not None
        return premise.text

    assert window(texts) == window(texts[::-1])


def test_windows_can_be_limited_to_some_sources() -> None:
    windows = list(index_of(POLICY, HOURS).windows("a fee", ENCODER, 100, only={"2"}))
    assert windows
    assert {part.sentence.source for window in windows for part in window.parts} == {1}


def test_marks_do_not_count_as_words_of_a_verbatim_claim() -> None:
    index = index_of("Fees, taxes, tips: none. Something else stands here as well.")
    assert index.verbatim("Fees, taxes, tips: none.", index.rank("Fees, taxes, tips: none.", limit=3)) is None


def test_the_model_reads_no_markup_and_the_reader_sees_the_source() -> None:
    text = "> The **fee** is paid\n> within [five days](https://example.org/a).<!-- draft -->"
    index = index_of(text)
    sentence = index.rank("The fee is paid within five days.", limit=1)[0].sentence
    assert sentence.text == "The fee is paid within five days."
    assert index.shown(sentence) in text
    assert index.shown(sentence).startswith("The **fee** is paid")


def test_records_are_read_with_their_keys() -> None:
    text = '{"name": "Opal", "attributes": {"OutdoorSeating": true, "WiFi": "free"}}'
    index = index_of(text)
    sentence = index.rank("It has outdoor seating.", limit=1)[0].sentence
    assert sentence.text == "attributes Outdoor Seating: yes."
    assert index.shown(sentence) == '"OutdoorSeating": true'


def test_records_are_found_among_many() -> None:
    rows = [{"city": f"Town {n}", "OutdoorSeating": n == 77, "stars": n / 20} for n in range(400)]
    index = index_of(json.dumps(rows))
    best = index.rank("Town 77 is a city with outdoor seating.", limit=3)
    assert "city: Town 77." in {item.sentence.text for item in best}


def test_table_rows_are_read_with_their_header() -> None:
    table = "| Plan | Monthly price |\n|---|---:|\n| Basic | 5 euros |\n| Pro | 9 euros |\n"
    index = index_of("Our plans:\n\n" + table)
    sentence = index.rank("The monthly price of the Pro plan is 9 euros.", limit=1)[0].sentence
    assert sentence.text == "Plan: Pro; Monthly price: 9 euros."
    assert index.shown(sentence) == "Pro | 9 euros"


def test_a_long_value_is_read_in_pieces_within_its_span() -> None:
    words = " ".join(f"word{n}" for n in range(400))
    text = json.dumps({"note\u00e9": words})
    index = index_of(text)
    found = index.rank("word390 word391 word392", limit=1)[0].sentence
    assert "word391" in found.text
    assert "word391" in index.shown(found)


def test_windows_leave_no_sentence_out_however_little_room_there_is() -> None:
    words = [f"item{n}" for n in range(60)]
    text = "The list begins. It names " + " ".join(words) + ". The list ends."
    index = index_of(text)
    premises = list(index.windows("A claim about item41.", ENCODER, 24))
    read = " ".join(premise.text for premise in premises)
    assert all(word in read for word in [*words, "begins", "ends"])
    for premise in premises:
        assert ENCODER.count([premise.text])[0] <= 24
        for part in premise.parts:
            assert index.shown(part.sentence) == part.sentence.text
