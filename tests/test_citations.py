from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.citations import (
    MAX_MARKERS,
    Marker,
    assign,
    citations_from_records,
    find_markers,
    known_keys,
    resolve,
    strip_markers,
)
from surefoot.citations.markers import mask_spans
from surefoot.errors import ConfigurationError, InputError
from surefoot.schema import Citation, CitationStatus, Source

SOURCES = (
    Source("policy.pdf", "Refunds take 30 days."),
    Source("b", "Staff may fly.", title="Handbook 2024"),
    Source("docs/FAQ.md", "Ask away.", title="Smith, Jones and Co"),
)
KNOWN = known_keys(SOURCES)

# answer, then (marker as written, keys) for each marker expected in it
CASES: list[tuple[str, list[tuple[str, tuple[str, ...]]]]] = [
    # labels in brackets
    ("a [Doc 1].", [("[Doc 1]", ("1",))]),
    ("a [doc 1].", [("[doc 1]", ("1",))]),
    ("a [DOC 1].", [("[DOC 1]", ("1",))]),
    ("a [Doc1].", [("[Doc1]", ("1",))]),
    ("a [Doc #2].", [("[Doc #2]", ("2",))]),
    ("a [Doc: 2].", [("[Doc: 2]", ("2",))]),
    ("a [Doc ID: 2].", [("[Doc ID: 2]", ("2",))]),
    ("a [doc_id: b].", [("[doc_id: b]", ("b",))]),
    ("a [doc: a, b].", [("[doc: a, b]", ("a", "b"))]),
    ("a [Doc policy.pdf].", [("[Doc policy.pdf]", ("policy.pdf",))]),
    ("a [Doc lost.pdf].", [("[Doc lost.pdf]", ("lost.pdf",))]),
    ("a [Docs 1 and 2].", [("[Docs 1 and 2]", ("1", "2"))]),
    ("a [Docs 1, 2 and 3].", [("[Docs 1, 2 and 3]", ("1", "2", "3"))]),
    ("a [Docs 1 & 2].", [("[Docs 1 & 2]", ("1", "2"))]),
    ("a [Docs 1-3].", [("[Docs 1-3]", ("1", "2", "3"))]),
    ("a [Docs 1 to 3].", [("[Docs 1 to 3]", ("1", "2", "3"))]),
    ("a [Doc 1, Doc 2].", [("[Doc 1, Doc 2]", ("1", "2"))]),
    ("a [Doc 1; Chunk 3].", [("[Doc 1; Chunk 3]", ("1", "3"))]),
    ("a [Document 3].", [("[Document 3]", ("3",))]),
    ("a [Documents 1, 3].", [("[Documents 1, 3]", ("1", "3"))]),
    ("a [Chunk 3].", [("[Chunk 3]", ("3",))]),
    ("a [chunk: b].", [("[chunk: b]", ("b",))]),
    ("a [Source 2].", [("[Source 2]", ("2",))]),
    ("a [Source: 2].", [("[Source: 2]", ("2",))]),
    ("a [Sources: 1, 2].", [("[Sources: 1, 2]", ("1", "2"))]),
    ("a [Source: Handbook 2024, p. 4].", [("[Source: Handbook 2024, p. 4]", ("Handbook 2024",))]),
    ("a [Source: Handbook 2024 p. 4].", [("[Source: Handbook 2024 p. 4]", ("Handbook 2024",))]),
    ("a [Source: Smith, Jones and Co].", [("[Source: Smith, Jones and Co]", ("Smith, Jones and Co",))]),
    ("a [Source: Acme, Inc.].", [("[Source: Acme, Inc.]", ("Acme, Inc.",))]),
    ("a [Source: Terms and Conditions].", [("[Source: Terms and Conditions]", ("Terms and Conditions",))]),
    ("a [Ref. 3].", [("[Ref. 3]", ("3",))]),
    ("a [citation:3].", [("[citation:3]", ("3",))]),
    ("a [cite: 1, 2].", [("[cite: 1, 2]", ("1", "2"))]),
    ("a [Passage 2].", [("[Passage 2]", ("2",))]),
    ("a [Doc 1, p. 4].", [("[Doc 1, p. 4]", ("1",))]),
    ("a [Doc 1, pp. 4, 7].", [("[Doc 1, pp. 4, 7]", ("1",))]),
    ("a [Doc 0].", [("[Doc 0]", ("0",))]),
    ("a [Doc 1](https://e.org/x).", [("[Doc 1](https://e.org/x)", ("1",))]),
    # bare numbers
    ("a [1].", [("[1]", ("1",))]),
    ("days[1].", [("[1]", ("1",))]),
    ("a [ 1 ].", [("[ 1 ]", ("1",))]),
    ("a [1, 2].", [("[1, 2]", ("1", "2"))]),
    ("a [1,2].", [("[1,2]", ("1", "2"))]),
    ("a [1; 2].", [("[1; 2]", ("1", "2"))]),
    ("a [1-3].", [("[1-3]", ("1", "2", "3"))]),
    ("a [1–3].", [("[1–3]", ("1", "2", "3"))]),
    ("a [1, 2-3].", [("[1, 2-3]", ("1", "2", "3"))]),
    ("a [3-1].", [("[3-1]", ("3-1",))]),
    ("a [1-50].", [("[1-50]", tuple(str(n) for n in range(1, 51)))]),
    ("a [1-51].", [("[1-51]", ("1-51",))]),
    ("a [1-999999999].", [("[1-999999999]", ("1-999999999",))]),
    ("a [1-30, 31-60].", [("[1-30, 31-60]", ("1-30, 31-60",))]),
    ("a [1][2].", [("[1]", ("1",)), ("[2]", ("2",))]),
    ("a [[1]].", [("[[1]]", ("1",))]),
    ("a [[1]](https://e.org).", [("[[1]](https://e.org)", ("1",))]),
    ("a [1](http://e.org).", [("[1](http://e.org)", ("1",))]),
    ("a [1](http://e.org/a_(b) 'T').", [("[1](http://e.org/a_(b) 'T')", ("1",))]),
    ("a [1] (http://e.org).", [("[1]", ("1",))]),
    ("a [16]-[19].", [("[16]", ("16",)), ("[19]", ("19",))]),
    ("a [0].", [("[0]", ("0",))]),
    ("a [^1].", [("[^1]", ("1",))]),
    ("a [^1]: b", [("[^1]", ("1",))]),
    ("a \\[1\\].", [("\\[1\\]", ("1",))]),
    ("天[1]。", [("[1]", ("1",))]),
    ("天［1］。", [("［1］", ("1",))]),
    ("([1], [2])", [("[1]", ("1",)), ("[2]", ("2",))]),
    ("- [x] a [1]", [("[1]", ("1",))]),
    ("a [1, p. 3].", [("[1, p. 3]", ("1",))]),
    ("a [1, 2024].", [("[1, 2024]", ("1", "2024"))]),
    # ids and titles in brackets, only known ones
    ("a [policy.pdf].", [("[policy.pdf]", ("policy.pdf",))]),
    ("a [POLICY.PDF].", [("[POLICY.PDF]", ("POLICY.PDF",))]),
    ("a [Handbook 2024].", [("[Handbook 2024]", ("Handbook 2024",))]),
    ("a [Smith, Jones and Co, p. 4].", [("[Smith, Jones and Co, p. 4]", ("Smith, Jones and Co",))]),
    ("a [lost.pdf].", []),
    # parentheses
    ("a (Source: x).", [("(Source: x)", ("x",))]),
    ("a (source: policy.pdf).", [("(source: policy.pdf)", ("policy.pdf",))]),
    ("a (Sources: x; y).", [("(Sources: x; y)", ("x", "y"))]),
    ("a (Source: Handbook (2024)).", [("(Source: Handbook (2024))", ("Handbook (2024)",))]),
    ("a (Source: [1], [2]).", [("(Source: [1], [2])", ("1", "2"))]),
    ("a (Source: [b](http://e.org)).", [("(Source: [b](http://e.org))", ("b",))]),
    ("a (Doc 1).", [("(Doc 1)", ("1",))]),
    ("a (see Doc 2, Section 3).", [("(see Doc 2, Section 3)", ("2",))]),
    ("a (see [1]).", [("[1]", ("1",))]),
    ("a (source code in [1]).", [("[1]", ("1",))]),
    ("a (source code).", []),
    ("a (1).", []),
    # lenticular brackets
    ("a【1†source】.", [("【1†source】", ("1",))]),
    ("a【1】.", [("【1】", ("1",))]),
    ("a【1†L3-L9】.", [("【1†L3-L9】", ("1",))]),
    ("a【4:0†source】.", [("【4:0†source】", ("4:0",))]),
    ("a【4:0†policy.pdf】.", [("【4:0†policy.pdf】", ("policy.pdf",))]),
    ("【注意】a", []),
    # superscripts
    ("Staff fly.¹", [("¹", ("1",))]),
    ("Staff may fly² often", [("²", ("2",))]),
    ("Staff fly.¹,²", [("¹,²", ("1", "2"))]),
    ("Staff fly.⁹", []),
    ("40 m² and 3 km² and 10³ and x²", []),
    ("9 miles² of it", []),
    ("(a+b)² = c", []),
    # brackets that cite nothing
    ("he said [sic] so", []),
    ("he said [...] so", []),
    ("he said [..] so", []),
    ("[] [ ] [-]", []),
    ("see [the text](http://e.org)", []),
    ("see [Handbook 2024](http://e.org)", []),
    ("see ![1](plot.png) here", []),
    ("in [2024] it was", []),
    ("in [2020-2024] it was", []),
    ("on [2024-05-01] it was", []),
    ("within [0, 1] always", []),
    ("x = [1, 2]", []),
    ("take array[0] of it", []),
    ("take x[1] of it", []),
    ("take my_list[1] of it", []),
    ("run `x [1]` now", []),
    ("run ``a ` [1]`` now", []),
    ("```\ny [1]\n```\n", []),
    ("~~~py\ny [1]\n~~~\nz [2]", [("[2]", ("2",))]),
    ("```\ny [1]", []),
    ("a `b [1] c", [("[1]", ("1",))]),
    ("a `b\n\n[1] c` d", [("[1]", ("1",))]),
    ("[^1]: Handbook, page 4", []),
    ("text\n[1]: http://e.org", []),
    ("  > [^1]: Handbook", []),
    ("- [x] done\n- [ ] open\n1. [X] done", []),
    ("[1.5] [1,000] [1a] [+1]", []),
    ("[citation needed] [source needed]", []),
    ("[Source code omitted] [Document redacted]", []),
    ("[Figure 1] [Table 2] [Section 3]", []),
    ("[Context: he means the plan]", []),
    ("[Doc ...] [Doc] [Doc: ]", []),
    ("at [12:30] and [00:12]", []),
    ("[1\n]", []),
    ("[1 2]", []),
    ("[" + "1" * 10 + "]", []),
]


def test_the_table_is_as_large_as_it_claims() -> None:
    assert len({answer for answer, _ in CASES}) == len(CASES) >= 80


@pytest.mark.parametrize(("answer", "expected"), CASES, ids=[repr(answer) for answer, _ in CASES])
def test_markers(answer: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    found = find_markers(answer, known=KNOWN)
    assert [(marker.text, marker.keys) for marker in found] == expected
    assert all(answer[marker.start : marker.end] == marker.text for marker in found)


def test_without_known_keys_numbers_and_labels_are_still_read() -> None:
    answer = "a [1] b [Doc x] c¹ d [policy.pdf] e [2024]"
    assert [marker.text for marker in find_markers(answer)] == ["[1]", "[Doc x]"]


def test_a_year_is_a_marker_when_there_are_that_many_sources() -> None:
    assert [m.keys for m in find_markers("a [2024]", known={str(n) for n in range(1, 2101)})] == [("2024",)]
    assert [m.keys for m in find_markers("a [2024]", known=known_keys([Source("2024", "")]))] == [("2024",)]


def test_numbered_zero_is_a_marker_where_a_source_is_called_so() -> None:
    known = known_keys([Source("0", ""), Source("1", "")])
    assert [m.keys for m in find_markers("days[0] and more [0, 1]", known=known)] == [("0",), ("0", "1")]


class TestPattern:
    def test_named_group_wins_over_first(self) -> None:
        found = find_markers("a {{src 7/b}}", pattern=r"\{\{src (\d+)/(?P<key>\w+)\}\}")
        assert [(m.text, m.keys) for m in found] == [("{{src 7/b}}", ("b",))]

    def test_first_group_and_lists(self) -> None:
        found = find_markers("a <c>x, y</c> [1]", pattern=re.compile(r"<c>(.*?)</c>"))
        assert [m.keys for m in found] == [("x", "y"), ("1",)]

    def test_whole_match_without_group(self) -> None:
        assert [m.keys for m in find_markers("a @b c", pattern=r"@\w+")] == [("@b",)]

    def test_it_wins_where_it_overlaps_a_built_in_form(self) -> None:
        found = find_markers("a [1][2] b [3]", pattern=r"\[(\d)\]\[\d\]")
        assert [(m.text, m.keys) for m in found] == [("[1][2]", ("1",)), ("[3]", ("3",))]

    def test_an_optional_group_that_took_no_part(self) -> None:
        assert [m.keys for m in find_markers("a @", pattern=r"@(\d)?")] == [("@",)]

    def test_empty_matches_are_skipped(self) -> None:
        assert find_markers("abc", pattern=r"x*") == ()

    def test_code_is_left_alone(self) -> None:
        assert find_markers("`@b`", pattern=r"@\w+") == ()

    @pytest.mark.parametrize("bad", ["(", "(?P<key", "*", re.compile(b"x"), b"x", 7])
    @pytest.mark.parametrize("answer", ["", "text"])
    def test_bad_patterns(self, bad: object, answer: str) -> None:
        with pytest.raises(ConfigurationError, match="citation pattern"):
            find_markers(answer, pattern=bad)  # type: ignore[arg-type]

    def test_the_number_of_markers_is_bounded(self) -> None:
        assert len(find_markers("@a [1] " * MAX_MARKERS, pattern=r"@\w")) == MAX_MARKERS


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a `b` c", ["`b`"]),
        ("a ``b ` c`` d", ["``b ` c``"]),
        ("a `b`` c", []),
        ("a \\`b` c", []),
        ("```\nx\n```\ny", ["```\nx\n```"]),
        ("````\n```\n````\ny", ["````\n```\n````"]),
        ("~~~\n```\n~~~\ny `z`", ["~~~\n```\n~~~", "`z`"]),
        ("- a\n  ```py\n  x\n  ```\n", ["  ```py\n  x\n  ```"]),
        ("a `b\n```\nc`\n```", ["```\nc`\n```"]),
        ("```\nx", ["```\nx"]),
        ("```x``` y", ["```x```"]),
    ],
)
def test_code_spans(text: str, code: list[str]) -> None:
    assert [text[start:end] for start, end in mask_spans(text)] == code


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Refunds take 30 days [Doc 1].", "Refunds take 30 days."),
        ("Refunds take 30 days. [Doc 1]", "Refunds take 30 days."),
        ("Refunds take 30 days.[1][2]", "Refunds take 30 days."),
        ("Refunds take 30 days [1], [2] and [3].", "Refunds take 30 days."),
        ("Refunds take 30 days ([1], [2]).", "Refunds take 30 days."),
        ("Refunds take 30 days (see [1]).", "Refunds take 30 days."),
        ("Refunds take 30 days (Source: policy.pdf).", "Refunds take 30 days."),
        ("Refunds take 30 days. [1].", "Refunds take 30 days."),
        ("Refunds [1] take 30 days", "Refunds take 30 days"),
        ("Refunds[1]take 30 days", "Refunds take 30 days"),
        ("One.[1]Two.", "One. Two."),
        ("[Doc 1]: Refunds take 30 days.", "Refunds take 30 days."),
        ("[1] -5 degrees", "-5 degrees"),
        ("about [1] .5 percent", "about .5 percent"),
        ("See [1](http://e.org/a_(b)), then go.", "See, then go."),
        ("需要30天[1]。", "需要30天。"),
        ("需要[1]三十天", "需要三十天"),
        ("One [1]\nTwo [2]\n", "One\nTwo\n"),
        ("- [1] One", "- One"),
        ("([1] One)", "(One)"),
        ("A [1]. [2] B", "A. B"),
        ("[1]", ""),
        ("([1])", ""),
        ("Staff fly.¹ Often.", "Staff fly. Often."),
        ("[sic] and (see) stay", "[sic] and (see) stay"),
        ("  untouched  text . ", "  untouched  text . "),
    ],
)
def test_strip(answer: str, expected: str) -> None:
    assert strip_markers(answer, 0, len(answer), find_markers(answer, known=KNOWN)) == expected


def test_strip_keeps_to_its_span() -> None:
    answer = "One [1]. Two [2]. Three [3]."
    markers = find_markers(answer)
    assert strip_markers(answer, 9, 17, markers) == "Two."
    assert strip_markers(answer, 6, 17, markers) == ". Two."  # the rest of "[1]" goes too
    assert strip_markers(answer, 0, 0, markers) == ""


class TestResolve:
    def resolved(self, answer: str, sources: tuple[Source, ...] = SOURCES) -> list[str | None]:
        return [c.source_id for c in resolve(find_markers(answer, known=known_keys(sources)), sources)]

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ("[Doc policy.pdf]", "policy.pdf"),
            ("[Doc POLICY.pdf]", "policy.pdf"),
            ("[Doc policy]", "policy.pdf"),
            ("[Source: handbook 2024]", "b"),
            ("[Source: Handbook  2024, pp. 3-4]", "b"),
            ("[Doc FAQ.md]", "docs/FAQ.md"),
            ("[Doc faq]", "docs/FAQ.md"),
            ("[Chunk 3]", "docs/FAQ.md"),
            ("[01]", "policy.pdf"),
            ("[Doc 1: the policy]", "policy.pdf"),
            ("[Doc 0]", None),
            ("[4]", None),
            ("[Doc lost.pdf]", None),
            ("[3-1]", None),
        ],
    )
    def test_order(self, answer: str, expected: str | None) -> None:
        assert self.resolved(answer) == [expected]

    def test_out_of_range_is_reported_and_never_dropped(self) -> None:
        citations = resolve(find_markers("a [1] b [16]"), SOURCES)
        assert [(c.key, c.source_id, c.status) for c in citations] == [
            ("1", "policy.pdf", CitationStatus.NOT_CHECKED),
            ("16", None, CitationStatus.UNRESOLVED),
        ]

    def test_one_citation_per_key_over_the_same_span(self) -> None:
        citations = resolve(find_markers("a [1, 2]"), SOURCES)
        assert [(c.marker, c.start, c.end, c.key) for c in citations] == [
            ("[1, 2]", 2, 8, "1"),
            ("[1, 2]", 2, 8, "2"),
        ]

    def test_numeric_ids_win_over_positions(self) -> None:
        assert self.resolved("[1] [2] [3]", (Source("2", ""), Source("1", ""), Source("x", ""))) == [
            "1",
            "2",
            "x",
        ]

    def test_exact_id_wins_over_folded_id_and_title(self) -> None:
        sources = (Source("A", ""), Source("a", ""), Source("c", "", title="a"))
        assert self.resolved("[Doc a] [Doc A]", sources) == ["a", "A"]

    def test_the_first_of_equal_names_wins(self) -> None:
        sources = (Source("x", "1", title="T"), Source("y", "2", title="T"))
        assert self.resolved("[Source: T]", sources) == ["x"]

    def test_no_sources(self) -> None:
        assert self.resolved("[1]", ()) == [None]

    def test_a_title_alone_is_no_empty_key(self) -> None:
        assert known_keys([Source("", "", title="")]) == {"1"}


class TestRecords:
    def test_fields(self) -> None:
        records = [
            {"marker": "[Doc 1]", "verification_score": 0.75},
            {"text": "[Doc 2]", "doc_id": "b", "verification_score": 1},
            {"chunk_id": 3},
            {"source_id": "lost", "verification_score": 0.9},
            {"doc_id": "policy.pdf", "chunk_id": "policy.pdf#7"},
            {"marker": "[1, 2]", "start": 4, "end": 10},
            {"text": "as the minister said", "verification_score": 0.5},
            {"text": "as the minister said", "verification_score": None},
        ]
        got = citations_from_records(records, SOURCES)
        assert [(c.key, c.source_id, c.status.value, c.verification_score, c.start) for c in got] == [
            ("1", "policy.pdf", "not_checked", 0.75, -1),
            ("b", "b", "not_checked", 1.0, -1),
            ("3", "docs/FAQ.md", "not_checked", None, -1),
            ("lost", None, "unresolved", 0.9, -1),
            ("policy.pdf", "policy.pdf", "not_checked", None, -1),
            ("1", "policy.pdf", "not_checked", None, 4),
            ("2", "b", "not_checked", None, 4),
            ("as the minister said", None, "not_checked", 0.5, -1),
            ("as the minister said", None, "unresolved", None, -1),
        ]

    def test_citations_are_resolved_anew(self) -> None:
        old = Citation("[1]", 2, 5, "1", source_id="gone", verification_score=0.5)
        (new,) = citations_from_records([old], SOURCES)
        assert (new.source_id, new.status, new.start) == (None, CitationStatus.UNRESOLVED, 2)

    @pytest.mark.parametrize(
        ("record", "message"),
        [
            ({"marker": "[1]", "score": 1}, r"citations\[1\]: unknown field 'score'"),
            ({"marker": "[1]", 3: 1}, r"citations\[1\]: unknown field 3"),
            ({"marker": 1}, r"citations\[1\]\.marker: expected text, got int"),
            ({"source_id": True}, r"citations\[1\]\.source_id"),
            ({"doc_id": 1.0}, r"citations\[1\]\.doc_id"),
            ({"doc_id": 10**5000}, r"citations\[1\]\.doc_id"),
            ({"marker": "[1]", "verification_score": 1.01}, r"citations\[1\]\.verification_score.*\[0, 1\]"),
            ({"marker": "[1]", "verification_score": -0.1}, r"citations\[1\]\.verification_score"),
            ({"marker": "[1]", "verification_score": math.nan}, r"citations\[1\]\.verification_score"),
            ({"marker": "[1]", "verification_score": "1"}, r"verification_score: expected a number, got str"),
            ({"marker": "[1]", "verification_score": True}, r"verification_score: expected a number"),
            ({"marker": "[1]", "verification_score": 10**400}, r"citations\[1\]\.verification_score"),
            ({"marker": "[1]", "start": 1}, r"citations\[1\]\.end"),
            ({"marker": "[1]", "start": "1", "end": 2}, r"citations\[1\]\.start: expected an integer"),
            ({"marker": "[1]", "start": 5, "end": 2}, r"citations\[1\]\.end"),
            ({"marker": " "}, r"citations\[1\]: needs one of"),
            ({}, r"citations\[1\]: needs one of"),
            ("[1]", r"citations\[1\]: expected a mapping, got str"),
            (None, r"citations\[1\]: expected a mapping, got NoneType"),
            (Citation("", -1, -1, "1", verification_score=2.0), r"citations\[1\]\.verification_score"),
        ],
    )
    def test_malformed(self, record: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            citations_from_records([{"marker": "[1]"}, record], SOURCES)  # type: ignore[list-item]

    @pytest.mark.parametrize("records", ["[1]", {"marker": "[1]"}, None, 3])
    def test_not_a_list(self, records: object) -> None:
        with pytest.raises(InputError, match="citations: expected a list"):
            citations_from_records(records, SOURCES)  # type: ignore[arg-type]

    def test_records_lend_source_and_score_to_their_markers_in_turn(self) -> None:
        records = citations_from_records(
            [
                {"marker": "[1]", "source_id": "b", "verification_score": 0.9},
                {"marker": "[1]", "source_id": "b", "verification_score": 0.3},
                {"source_id": "docs/FAQ.md", "verification_score": 0.6},
                {"source_id": "policy.pdf", "verification_score": 0.1},
            ],
            SOURCES,
        )
        got = resolve(find_markers("a [1] b [1] c [1] d [3]"), SOURCES, records=records)
        assert [(c.start, c.key, c.source_id, c.verification_score) for c in got] == [
            (2, "1", "b", 0.9),
            (8, "1", "b", 0.3),
            (14, "1", "b", 0.3),
            (20, "3", "docs/FAQ.md", 0.6),
            (-1, "policy.pdf", "policy.pdf", 0.1),
        ]


def spans(answer: str, *parts: str) -> list[tuple[int, int]]:
    return [(answer.index(part), answer.index(part) + len(part)) for part in parts]


@pytest.mark.parametrize(
    ("answer", "parts", "expected"),
    [
        ("One [1]. Two [2].", ("One [1].", "Two [2]."), ((0,), (1,))),
        ("One. [1] Two.", ("One.", "Two."), ((0,), ())),
        ("One. [1][2] Two. [3]", ("One.", "Two."), ((0, 1), (2,))),
        ("One.\n[1]\nTwo.", ("One.", "Two."), ((0,), ())),
        ("One.\n[1] Two.", ("One.", "Two."), ((), (0,))),
        ("One.\n\n[1]\nTwo.", ("One.", "Two."), ((), (0,))),
        ("One.\n\n[1]\n\nTwo.", ("One.", "Two."), ((0,), ())),
        ("[1] One. Two.", ("One.", "Two."), ((0,), ())),
        ("[1]\n\nOne.", ("One.",), ((0,),)),
        ("One. Two.\n\n[1]", ("One.", "Two."), ((), (0,))),
        ("One [1].", (), ()),
        ("Two [1]. One [2].", ("One [2].", "Two [1]."), ((1,), (0,))),
    ],
)
def test_assign(answer: str, parts: tuple[str, ...], expected: tuple[tuple[int, ...], ...]) -> None:
    assert assign(find_markers(answer), spans(answer, *parts), answer) == expected


PIECES = st.sampled_from(
    [
        *"[](){}【】†^¹²#`~\\\n\t ,;:.-–=!>_x1260",
        "[1]",
        "[Doc 1]",
        "(Source: ",
        "```",
        "](",
        "b",
        "and",
        "word ",
    ]
)
TEXT = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(st.characters(), max_size=80))


@settings(max_examples=400, deadline=None)
@given(TEXT)
def test_offsets_are_exact_for_any_text(answer: str) -> None:
    found = find_markers(answer, known=KNOWN)
    end = 0
    for marker in found:
        assert end <= marker.start < marker.end <= len(answer)
        assert answer[marker.start : marker.end] == marker.text
        assert 1 <= len(marker.keys) <= 50
        assert all(marker.keys)
        end = marker.end
    citations = resolve(found, SOURCES)
    assert [(c.start, c.end) for c in citations] == [(m.start, m.end) for m in found for _ in m.keys]
    assert all((c.source_id is None) == (c.status is CitationStatus.UNRESOLVED) for c in citations)


@settings(max_examples=400, deadline=None)
@given(TEXT, st.integers(0, 80), st.integers(0, 80))
def test_strip_removes_markers_and_invents_nothing(answer: str, first: int, second: int) -> None:
    start, end = sorted((min(first, len(answer)), min(second, len(answer))))
    found = find_markers(answer, known=KNOWN)
    inside = {at for marker in found for at in range(marker.start, marker.end)}
    kept = iter([char for at, char in enumerate(answer) if start <= at < end and at not in inside])
    stripped = strip_markers(answer, start, end, found)
    # what is left is a subsequence of the text outside markers, spaces apart
    assert all(any(char == other for other in kept) for char in stripped if char != " ")
    letters = [c for at, c in enumerate(answer) if start <= at < end and at not in inside and c.isdigit()]
    assert [c for c in stripped if c.isdigit()] == letters


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["Staff may fly", "days", "。", ". ", "[1]", " [Doc b]", "【2】", "\n"]), max_size=30
    )
)
def test_nothing_that_was_found_is_left(parts: list[str]) -> None:
    answer = "".join(parts)
    found = find_markers(answer, known=KNOWN)
    stripped = strip_markers(answer, 0, len(answer), found)
    assert not any(marker.text in stripped for marker in found)
    assert " ." not in stripped or " ." in answer


@settings(max_examples=200, deadline=None)
@given(TEXT, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_every_marker_belongs_to_exactly_one_segment(answer: str, steps: list[tuple[int, int]]) -> None:
    segments, at = [], 0
    for gap, size in steps:
        segments.append((at + gap, at + gap + size))
        at += gap + size
    found = find_markers(answer, known=KNOWN)
    owned = sorted(number for numbers in assign(found, segments, answer) for number in numbers)
    assert owned == (list(range(len(found))) if segments else [])


HOSTILE = {
    "open": "[" * 100_000,
    "half": "[1" * 100_000,
    "paren": "(source: (" * 30_000,
    "nested": "(source:" + "(a)" * 50_000,
    "ticks": "`a``" * 50_000,
    "lines": "\n" * 100_000,
    "links": "[1](a" * 50_000,
    "long link": "[1](" + "a" * 100_000,
    "words": "[a] " * 20_000,
    "superscripts": "¹" * 100_000,
    "surrogates": "\ud800[1]\x00" * 20_000,
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_of_any_length(answer: str) -> None:
    # nothing is timed here; a quadratic step would take these to minutes
    found = find_markers(answer, known=KNOWN)
    assert len(found) <= MAX_MARKERS
    assert len(strip_markers(answer, 0, len(answer), found)) <= len(answer)
    assert len(assign(found, [(0, 1), (9, 12)], answer)) == 2


def test_markers_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Marker(0, 1, "x", ("x",)).start = 3  # type: ignore[misc]
