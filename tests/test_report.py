"""Text renderings: complete, and inert whatever the answer and the sources hold."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console

import report_builders as build
from surefoot.report import wording
from surefoot.report.table import print_report, render_text
from surefoot.report.wording import figures, headline, notes, printable, undefined_because
from surefoot.schema import (
    Citation,
    CitationStatus,
    ClaimKind,
    Reason,
    RiskLevel,
    Source,
    TruthfulnessReport,
    Verdict,
)

HOSTILE = "a\x1b[31mred\x1b]0;title\x07\x9b2J\r\x00\u202egnp.exe\u2066\ud800[bold]b[/bold] :smile: \u2028end"


def on_terminal(report: TruthfulnessReport, *, width: int = 100, color: bool = True) -> str:
    buffer = io.StringIO()
    system = "truecolor" if color else None
    console = Console(
        file=buffer, force_terminal=True, width=width, color_system=system, legacy_windows=False, _environ={}
    )
    print_report(report, console)
    return buffer.getvalue()


def hostile_report() -> TruthfulnessReport:
    """The text of strangers wherever a report can hold it."""
    source = Source(HOSTILE, HOSTILE, HOSTILE)
    citation = Citation(
        HOSTILE, -1, -1, HOSTILE, HOSTILE, CitationStatus.NOT_SUPPORTING, 0.1, proposal=HOSTILE
    )
    claim = build.claim(
        HOSTILE,
        HOSTILE,
        Verdict.UNSUPPORTED,
        Reason.NO_SUPPORTING_EVIDENCE,
        evidence=(build.evidence(source, HOSTILE),),
        citations=(citation,),
        proposals=(HOSTILE,),
        detail=HOSTILE,
    )
    return build.report(
        answer=HOSTILE,
        question=HOSTILE,
        sources=(source,),
        claims=(claim,),
        citations=(citation, replace(citation, key="elsewhere")),
        model=HOSTILE,
    )


def controls(text: str) -> set[str]:
    return {
        c for c in text if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066\u2028")
    }


def test_the_plain_text_says_everything() -> None:
    text = render_text(build.report())
    for expected in (
        "score 0.178, risk high",
        "4 checkable claims: 1 supported, 1 contradicted, 1 unsupported, 1 to review.",
        "citation groundedness: 0.070",
        "uncited claims:        2",
        "coverage:              0.870",
        "1. ✗ contradicted, support 0.03, against 0.94",
        "claim: You can return any item within 15 days of delivery. [1]",
        "evidence: refund-policy: “A customer may return any item within 10 days of delivery.”",
        "citation: [1] → refund-policy: does not support the claim (0.03)",
        "citation: [2] → shipping.md: does not support the claim (0.11); refund-policy does",
        "reason: a number differs from the evidence",
        "could cite: shipping.md",
        "5. – not checkable",
        "reason: a question",
    ):
        assert expected in text


def test_a_pipe_gets_no_escape_sequences() -> None:
    assert "\x1b" not in render_text(build.report())
    buffer = io.StringIO()
    print_report(build.report(), Console(file=buffer, width=100, _environ={}))
    assert buffer.getvalue() == render_text(build.report())


def test_a_terminal_gets_a_coloured_table() -> None:
    text = on_terminal(build.report())
    assert "\x1b[" in text
    assert "│" in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    for expected in ("✗ contradicted", "✓ supported", "support 0.97", "refund-policy", "0.178", "could cite"):
        assert expected in plain


def test_a_terminal_without_colours_gets_none() -> None:
    assert "\x1b" not in on_terminal(build.report(), color=False).replace("\x1b[1m", "").replace(
        "\x1b[0m", ""
    )
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, width=100, _environ={"NO_COLOR": "1"})
    print_report(build.report(), console)
    codes = {
        code for found in re.findall(r"\x1b\[([0-9;]*)m", buffer.getvalue()) for code in found.split(";")
    }
    assert codes <= {"0", "1", "2", "3", "22", "23"}  # bold, faint and italic are no colours


@pytest.mark.parametrize("width", [10, 40, 71, 72, 90, 200])
def test_any_width_and_wide_characters(width: int) -> None:
    text = "退货期限为十天。" * 30 + " 👩‍👩‍👧 é́́́ नमस्ते"
    source = Source("政策", text)
    claim = build.claim(
        text, text, Verdict.SUPPORTED, Reason.VERBATIM, evidence=(build.evidence(source, text),)
    )
    out = on_terminal(
        build.report(answer=text, sources=(source,), claims=(claim,), citations=()), width=width
    )
    assert "退" in out


def test_hostile_text_is_inert() -> None:
    assert controls(render_text(hostile_report())) == set()
    terminal = on_terminal(hostile_report(), width=400)
    assert controls(re.sub(r"\x1b\[[0-9;]*m", "", terminal)) == set()
    assert not re.search(r"\x1b(?!\[[0-9;]*m)", terminal)
    for text in (render_text(hostile_report()), terminal):
        assert "[bold]b[/bold]" in text
        assert ":smile:" in text
        assert "<U+001B>[31mred" in text
        assert "<U+202E>" in text
        text.encode()  # no lone surrogate is left


def test_hostile_text_cannot_forge_a_line() -> None:
    forged = "x\nscore 1.000, risk low\r\n2. ✓ supported"
    claim = build.claim(forged, forged, Verdict.UNSUPPORTED)
    text = render_text(build.report(answer=forged, claims=(claim,), citations=()))
    assert [line for line in text.splitlines() if line.startswith(("score 1", "2. "))] == []


@given(st.text(st.characters(), max_size=200))
def test_what_is_printable_is_inert_and_keeps_the_rest(text: str) -> None:
    shown = printable(text)
    assert controls(shown) == set()
    assert "\n" not in shown
    shown.encode()
    assume("<U+" not in text)
    acting = controls(text) | set("\u202a\u202b\u202c\u202d\u2067\u2068\u2069\u2029\n\ufffd ")
    kept = "".join(c for c in text if c not in acting and not 0xD800 <= ord(c) < 0xE000)
    assert re.sub(r"<U\+[0-9A-F]{4}>|\ufffd| ", "", shown) == kept
    assert controls(printable(text, lines=True)) <= {"\t"}


def test_ordinary_text_is_printed_as_it_is() -> None:
    text = "Ünïcode, ‏עברית‎, العربية, 中文, 👩‍👩‍👧, a–b “c”"
    assert printable(text) == text
    assert printable("a\r\nb\tc\rd\ne", lines=True) == "a\nb\tc\nd\ne"
    assert printable("a\r\nb\tc") == "a  b c"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason.EMPTY_ANSWER, "empty answer"),
        (Reason.NO_SOURCES, "no sources"),
        (Reason.NO_CHECKABLE_CLAIM, "no checkable claim"),
    ],
)
def test_undefined_figures_say_why(reason: Reason, words: str) -> None:
    report = build.empty_report(reason)
    text = render_text(report)
    assert f"score:                 undefined ({words})" in text
    assert f"citation recall:       undefined ({words})" in text
    assert headline(report) == f"Nothing was checked: {words}."
    assert "0.000" not in text
    assert "1.000" not in text
    assert f"undefined ({words})" in on_terminal(report)


def test_citation_figures_without_citations_say_so() -> None:
    report = build.report(
        citations=(),
        citation_groundedness=None,
        citation_precision=None,
        score=0.25,
        reasons=(Reason.NO_CITATIONS,),
    )
    assert undefined_because(report, "citation_precision") == "undefined (no citations)"
    assert undefined_because(report, "nli_faithfulness") == "undefined"
    score = figures(report)[0]
    assert score.explanation.startswith("Faithfulness alone")


def test_claims_that_were_not_checked_for_want_of_sources_are_not_counted() -> None:
    claims = (build.claim("An answer of five words.", "An answer of five words.", Verdict.REVIEW),)
    report = build.empty_report(Reason.NO_SOURCES, answer="An answer of five words.")
    assert headline(replace(report, claims=claims)) == "Nothing was checked: no sources."


def test_a_degraded_report_says_so_first() -> None:
    report = build.report(degraded=True, reasons=(Reason.CHECKER_FAILED, Reason.DUPLICATE_SOURCE_ID))
    first, _, *rest = render_text(report).splitlines()
    assert "DEGRADED" in first
    assert rest[0] == "note: not checked: a step of the check failed"
    assert notes(report)[1].startswith("two sources have the same id")
    assert "DEGRADED" in on_terminal(report)


def test_citations_outside_any_claim_are_shown() -> None:
    stray = Citation("[9]", 3, 6, "9", None, CitationStatus.UNRESOLVED)
    report = build.report()
    report = replace(report, citations=(*report.citations, stray))
    assert "outside any claim: [9]: names no source" in render_text(report)
    assert "outside any claim: " in on_terminal(report)
    assert "outside any claim" not in render_text(build.report())


def test_long_texts_are_cut_visibly() -> None:
    long = "word " * 100_000
    claim = build.claim(long, long, Verdict.UNSUPPORTED)
    text = render_text(build.report(answer=long, claims=(claim,), citations=()))
    assert len(text) < 3_000
    assert "word…" in text


def test_an_ascii_terminal_gets_ascii() -> None:
    buffer = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    print_report(build.report(), Console(file=buffer, force_terminal=True, width=100, color_system=None))
    print_report(build.report(), Console(file=buffer, width=100, _environ={}))
    out = buffer.buffer.getvalue().decode("ascii")
    assert "x contradicted" in out


@pytest.mark.parametrize("code", [*Reason, *CitationStatus, *ClaimKind])
def test_every_code_has_words(code: Reason | CitationStatus | ClaimKind) -> None:
    tables: dict[type, dict[object, str]] = {
        Reason: wording._REASONS,
        CitationStatus: wording._STATUSES,
        ClaimKind: wording._KINDS,
    }
    assert tables[type(code)][code]


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_can_be_shown(verdict: Verdict) -> None:
    report = build.report(claims=(build.claim("One claim.", "One claim.", verdict),), answer="One claim.")
    assert str(verdict).replace("_", " ") in render_text(report)
    assert wording.SYMBOLS[verdict] in on_terminal(report)


@pytest.mark.parametrize("risk", RiskLevel)
def test_every_risk_can_be_shown(risk: RiskLevel) -> None:
    assert f"risk {risk}" in render_text(build.report(risk_level=risk))
