"""A report for terminals and pipes.

Answers, sources, ids and titles are text of strangers. Nothing of theirs reaches a terminal before
:func:`~surefoot.report.wording.printable` has taken out what would act there, and nothing of theirs is read
as rich markup.
"""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.report.wording import (
    SYMBOLS,
    citation_words,
    citations_elsewhere,
    claim_reasons,
    figures,
    headline,
    main_evidence,
    notes,
    printable,
    undefined_because,
)
from surefoot.schema import Citation, Claim, Evidence, RiskLevel, TruthfulnessReport, Verdict

__all__ = ["print_report", "render_text"]

_CLAIM_SHOWN = 1_000  # code points of a claim that a terminal gets; JSON and HTML have all of it
_QUOTE_SHOWN = 300
_EVIDENCE_SHOWN = 2
_NARROWEST_TABLE = 72

_ASCII_SYMBOLS = {
    Verdict.SUPPORTED: "+",
    Verdict.CONTRADICTED: "x",
    Verdict.UNSUPPORTED: "o",
    Verdict.REVIEW: "?",
    Verdict.NOT_CHECKABLE: "-",
}
_STYLES = {
    Verdict.SUPPORTED: "green",
    Verdict.CONTRADICTED: "bold red",
    Verdict.UNSUPPORTED: "yellow",
    Verdict.REVIEW: "magenta",
    Verdict.NOT_CHECKABLE: "dim",
}
_RISK_STYLES = {
    RiskLevel.LOW: "green",
    RiskLevel.MEDIUM: "yellow",
    RiskLevel.HIGH: "bold red",
    RiskLevel.UNKNOWN: "magenta",
}


def _clip(text: str, limit: int) -> str:
    shown = " ".join(printable(text[: 2 * limit]).split())
    cut = len(text) > 2 * limit or len(shown) > limit
    return shown[:limit].rstrip() + "…" if cut else shown


def render_text(report: TruthfulnessReport) -> str:
    """The report as plain text without escape sequences: one line an item, made for pipes and logs."""
    buffer = io.StringIO()
    console = Console(file=buffer, color_system=None, force_terminal=False, width=120, legacy_windows=False)
    _print_list(report, console)
    return buffer.getvalue()


def print_report(report: TruthfulnessReport, console: Console) -> None:
    """Print the report: a table on a terminal, the lines of :func:`render_text` anywhere else."""
    if not console.is_terminal or console.width < _NARROWEST_TABLE:
        _print_list(report, console)
        return
    ascii_only = console.options.ascii_only
    _line(console, _title(report))
    _line(console, Text(_ascii(headline(report), ascii_only)))
    for note in notes(report):
        _line(console, Text(f"note: {note}"))
    console.print(_claims_table(report, ascii_only))
    for citation in citations_elsewhere(report):
        _line(console, Text("outside any claim: ").append_text(_citation_line(citation, ascii_only)))
    console.print(_figures_table(report, ascii_only))


def _ascii(text: str, ascii_only: bool) -> str:
    if not ascii_only:
        return text
    for there, here in (("×", "x"), ("…", "..."), ("“", '"'), ("”", '"'), ("→", "->")):
        text = text.replace(there, here)
    return text


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _title(report: TruthfulnessReport) -> Text:
    score = undefined_because(report, "score") if report.score is None else f"{report.score:.3f}"
    title = Text(f"score {score}", style="bold").append(", risk ", style="not bold")
    title.append(str(report.risk_level), style=_RISK_STYLES[report.risk_level])
    if report.degraded:
        title.append(", DEGRADED: part of the check could not be carried out", style="bold red")
    return title


def _verdict(claim: Claim, ascii_only: bool) -> Text:
    symbol = (_ASCII_SYMBOLS if ascii_only else SYMBOLS)[claim.verdict]
    words = str(claim.verdict).replace("_", " ")
    return Text(f"{symbol} {words}", style=_STYLES[claim.verdict])


def _evidence_line(evidence: Evidence, ascii_only: bool) -> Text:
    quote = _clip(evidence.text, _QUOTE_SHOWN)
    line = Text(_clip(evidence.source_id, 80), style="bold")
    return line.append(_ascii(f": “{quote}”", ascii_only), style="not bold")


def _citation_line(citation: Citation, ascii_only: bool) -> Text:
    line = Text(_clip(citation.marker or citation.key, 80), style="bold")
    if citation.source_id is not None:
        line.append(_ascii(f" → {_clip(citation.source_id, 80)}", ascii_only), style="not bold")
    line.append(f": {citation_words(citation)}", style="not bold")
    if citation.proposal is not None:
        line.append(f"; {_clip(citation.proposal, 80)} does", style="not bold")
    return line


def _proposals(claim: Claim) -> str:
    return ", ".join(_clip(proposal, 80) for proposal in claim.proposals)


def _claims_table(report: TruthfulnessReport, ascii_only: bool) -> Table:
    table = Table(show_lines=True, expand=True, highlight=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim", ratio=2, overflow="fold")
    table.add_column("evidence, citations, reasons", ratio=3, overflow="fold")
    for number, claim in enumerate(report.claims, start=1):
        verdict = _verdict(claim, ascii_only)
        if claim.support is not None:
            verdict.append(f"\nsupport {claim.support:.2f}", style="not bold default")
        if claim.contradiction is not None and claim.verdict is Verdict.CONTRADICTED:
            verdict.append(f"\nagainst {claim.contradiction:.2f}", style="not bold default")
        because: list[Text] = []
        because.extend(_evidence_line(item, ascii_only) for item in main_evidence(claim)[:_EVIDENCE_SHOWN])
        because.extend(_citation_line(citation, ascii_only) for citation in claim.citations)
        if claim.proposals:
            because.append(Text(f"could cite: {_proposals(claim)}"))
        because.extend(Text(_clip(words, _QUOTE_SHOWN), style="italic") for words in claim_reasons(claim))
        quiet = "dim" if claim.verdict is Verdict.NOT_CHECKABLE else ""
        table.add_row(
            str(number),
            verdict,
            Text(_ascii(_clip(claim.text, _CLAIM_SHOWN), ascii_only), style=quiet),
            Text("\n").join(because),
        )
    return table


def _figures_table(report: TruthfulnessReport, ascii_only: bool) -> Table:
    table = Table(box=None, show_header=False, highlight=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_column(style="dim")
    for figure in figures(report):
        explanation = _ascii(figure.explanation, ascii_only)
        table.add_row(figure.label, Text(figure.value, style="bold"), Text(explanation))
    return table


def _print_list(report: TruthfulnessReport, console: Console) -> None:
    ascii_only = console.options.ascii_only

    def put(text: Text) -> None:
        _line(console, text)

    put(_title(report))
    put(Text(_ascii(headline(report), ascii_only)))
    for note in notes(report):
        put(Text(f"note: {note}"))
    put(Text(""))
    for figure in figures(report):
        put(Text(f"{figure.label + ':':<23}{figure.value}"))
    for number, claim in enumerate(report.claims, start=1):
        put(Text(""))
        first = Text(f"{number}. ").append_text(_verdict(claim, ascii_only))
        if claim.support is not None:
            first.append(f", support {claim.support:.2f}")
        if claim.contradiction is not None and claim.verdict is Verdict.CONTRADICTED:
            first.append(f", against {claim.contradiction:.2f}")
        put(first)
        put(Text(f"   claim: {_ascii(_clip(claim.text, _CLAIM_SHOWN), ascii_only)}"))
        for evidence in main_evidence(claim)[:_EVIDENCE_SHOWN]:
            put(Text("   evidence: ").append_text(_evidence_line(evidence, ascii_only)))
        for citation in claim.citations:
            put(Text("   citation: ").append_text(_citation_line(citation, ascii_only)))
        if claim.proposals:
            put(Text(f"   could cite: {_proposals(claim)}"))
        for words in claim_reasons(claim):
            put(Text(f"   reason: {_ascii(_clip(words, _QUOTE_SHOWN), ascii_only)}"))
    for citation in citations_elsewhere(report):
        put(Text("\noutside any claim: ").append_text(_citation_line(citation, ascii_only)))
