"""A report as one HTML file that needs nothing else.

The file opens from a mail attachment or a build artefact: no network, no font, no image. All markup is
made here, so the page reads as a list without JavaScript, and nothing of a stranger's text goes
anywhere but into escaped text nodes: not into attributes, identifiers, links or scripts. A content
security policy with the hashes of the one style sheet and the one script forbids the rest.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
)
from surefoot.schema import Citation, Claim, Evidence, Source, TruthfulnessReport

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["render_html", "write_html"]

_SOURCE_SHOWN = 200_000  # code points; a longer source is shown around its evidence only
_TOTAL_SHOWN = 2_000_000  # where the sources are longer together, all of them are
_AROUND = 2_000
_UNUSED_SHOWN = 200  # sources that no claim rests on or cites


def render_html(report: TruthfulnessReport, *, title: str = "surefoot report") -> str:
    """The report as an HTML document.

    Args:
        report: any report, whatever its texts hold.
        title: heading of the page and its title in the browser.

    Returns:
        A document that can be encoded as UTF-8: unpaired surrogates are U+FFFD in it.
    """
    order = {source.id: index for index, source in reversed(list(enumerate(report.sources)))}
    sources, hidden = _sources(report, order)
    shown = {source.index for source in sources}
    links = {source_id: index for source_id, index in order.items() if index in shown}
    claims = [_ClaimView.of(number, claim, links) for number, claim in enumerate(report.claims, start=1)]
    document = _template().render(
        title=printable(title),
        headline=headline(report),
        notes=notes(report),
        report=report,
        figures=figures(report),
        question=None if report.question is None else printable(report.question, lines=True),
        answer=_answer(report),
        claims=claims,
        elsewhere=[_citation(citation, links) for citation in citations_elsewhere(report)],
        sources=sources,
        hidden=hidden,
        model=printable(report.model),
        symbols={str(verdict): symbol for verdict, symbol in SYMBOLS.items()},
    )
    return document.translate(_NO_SURROGATES)


def write_html(
    report: TruthfulnessReport, path: str | os.PathLike[str], *, title: str = "surefoot report"
) -> None:
    """Write :func:`render_html` to a file, which is replaced as a whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path)
    document = render_html(report, title=title)
    handle, name = tempfile.mkstemp(prefix=".surefoot-", suffix=".html", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(document.encode())
        Path(name).chmod(0o666 & ~_umask())  # mkstemp makes it private; a report is an ordinary file
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


_NO_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@cache
def _template() -> Template:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["csp"] = _csp_hash
    asset = resources.files("surefoot").joinpath("assets/report.html.j2")
    return environment.from_string(asset.read_text(encoding="utf-8"))


def _csp_hash(text: str) -> str:
    """A source expression for exactly this inline text (CSP level 3, section 2.3.1)."""
    digest = hashlib.sha256(str(text).encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A run of text that is marked the same way from its first to its last character."""

    text: str
    claims: tuple[int, ...] = ()  # numbers of the claims that it is, or is main evidence for
    minor: tuple[int, ...] = ()  # numbers of the claims that it is other evidence for
    verdict: str = ""
    cite: str = ""  # status of the citation that it is the marker of
    parts: tuple[_Piece, ...] = ()  # of a claim
    gap: int = 0  # code points left out here


@dataclass(frozen=True, slots=True)
class _ClaimView:
    number: int
    text: str
    verdict: str
    words: str
    symbol: str
    support: str
    against: str
    reasons: tuple[str, ...]
    evidence: tuple[dict[str, Any], ...]
    minor: tuple[dict[str, Any], ...]
    citations: tuple[dict[str, Any], ...]
    proposals: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, number: int, claim: Claim, links: dict[str, int]) -> _ClaimView:
        main = main_evidence(claim)
        return cls(
            number=number,
            text=printable(claim.text, lines=True),
            verdict=str(claim.verdict),
            words=str(claim.verdict).replace("_", " "),
            symbol=SYMBOLS[claim.verdict],
            support="" if claim.support is None else f"{claim.support:.2f}",
            against="" if claim.contradiction is None else f"{claim.contradiction:.2f}",
            reasons=tuple(printable(words) for words in claim_reasons(claim)),
            evidence=tuple(_evidence(item, links) for item in main),
            minor=tuple(_evidence(item, links) for item in claim.evidence if item not in main),
            citations=tuple(_citation(citation, links) for citation in claim.citations),
            proposals=tuple(_link(proposal, links) for proposal in claim.proposals),
        )


def _link(source_id: str, links: dict[str, int]) -> dict[str, Any]:
    return {"id": printable(source_id), "index": links.get(source_id)}


def _evidence(evidence: Evidence, links: dict[str, int]) -> dict[str, Any]:
    return {"text": printable(evidence.text, lines=True), **_link(evidence.source_id, links)}


def _citation(citation: Citation, links: dict[str, int]) -> dict[str, Any]:
    return {
        "marker": printable(citation.marker or citation.key),
        "status": str(citation.status),
        "words": citation_words(citation),
        "source": None if citation.source_id is None else _link(citation.source_id, links),
        "proposal": None if citation.proposal is None else _link(citation.proposal, links),
    }


def _answer(report: TruthfulnessReport) -> list[_Piece]:
    """The whole answer as pieces, claims with the markers in them."""
    text, position = report.answer, 0
    pieces: list[_Piece] = []
    markers = deque(
        sorted({(c.start, c.end, str(c.status)) for c in report.citations if 0 <= c.start < c.end})
    )
    claims = sorted(enumerate(report.claims, start=1), key=lambda item: (item[1].start, item[1].end))
    for number, claim in claims:
        if claim.start < position or claim.end > len(text) or claim.start == claim.end:
            continue  # overlapping segments cannot both be marked; all are in the list below the answer
        pieces.extend(_with_markers(text, position, claim.start, markers))
        parts = tuple(_with_markers(text, claim.start, claim.end, markers))
        pieces.append(_Piece("", claims=(number,), verdict=str(claim.verdict), parts=parts))
        position = claim.end
    pieces.extend(_with_markers(text, position, len(text), markers))
    return pieces


def _with_markers(text: str, start: int, end: int, markers: deque[tuple[int, int, str]]) -> Iterable[_Piece]:
    # Markers are consumed from the front: pieces are made in the order of the text.
    while markers and markers[0][0] < end:
        first, last, status = markers[0]
        if last > end:
            break
        markers.popleft()
        if first < start:
            continue
        if first > start:
            yield _Piece(printable(text[start:first], lines=True))
        yield _Piece(printable(text[first:last], lines=True), cite=status)
        start = last
    if start < end:
        yield _Piece(printable(text[start:end], lines=True))


_Mark = tuple[int, int, int, bool]
"""Start and end of evidence, number of the claim, and whether it is main evidence."""


@dataclass(frozen=True, slots=True)
class _SourceView:
    index: int
    id: str
    title: str
    used: bool
    cited: bool
    length: int
    pieces: tuple[_Piece, ...]


def _sources(report: TruthfulnessReport, order: dict[str, int]) -> tuple[list[_SourceView], int]:
    """Views of the sources worth showing, and how many are left out."""
    spans: dict[int, list[_Mark]] = {}
    cited: set[int] = set()
    for number, claim in enumerate(report.claims, start=1):
        main = main_evidence(claim)
        for evidence in claim.evidence:
            if evidence.source_id in order:
                mark = (evidence.start, evidence.end, number, evidence in main)
                spans.setdefault(order[evidence.source_id], []).append(mark)
    for citation in report.citations:
        if citation.source_id in order:
            cited.add(order[citation.source_id])
    long = sum(len(source.text) for source in report.sources) > _TOTAL_SHOWN
    views, unused, hidden = [], 0, 0
    for index, source in enumerate(report.sources):
        if index not in spans and index not in cited:
            unused += 1
            if unused > _UNUSED_SHOWN:
                hidden += 1
                continue
        views.append(_source(index, source, spans.get(index, []), index in cited, long))
    return views, hidden


def _source(index: int, source: Source, spans: Sequence[_Mark], cited: bool, elide: bool) -> _SourceView:
    size = len(source.text)
    shown = [(0, size)]
    if elide or size > _SOURCE_SHOWN:
        around = sorted((max(0, start - _AROUND), min(size, end + _AROUND)) for start, end, *_ in spans)
        shown = _merged(around or [(0, min(size, _AROUND))])
    return _SourceView(
        index=index,
        id=printable(source.id),
        title=printable(source.title or ""),
        used=bool(spans),
        cited=cited,
        length=size,
        pieces=tuple(_marked(source.text, spans, shown)),
    )


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for start, end in ranges:
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def _marked(text: str, spans: Sequence[_Mark], shown: Sequence[tuple[int, int]]) -> Iterable[_Piece]:
    """Cut the shown ranges at every boundary of evidence; evidence of several claims may overlap."""
    events: list[tuple[int, int, tuple[int, bool]]] = []  # position, +1 or -1, claim
    for start, end, number, main in spans:
        if 0 <= start < end <= len(text):
            events.extend(((start, 1, (number, main)), (end, -1, (number, main))))
    events.sort()
    active: dict[tuple[int, bool], int] = {}
    position, at = 0, 0
    for first, last in shown:
        if first > position:
            yield _Piece("", gap=first - position)
        position = first
        while position < last:
            while at < len(events) and events[at][0] <= position:
                _, step, key = events[at]
                active[key] = active.get(key, 0) + step
                at += 1
            stop = min(last, events[at][0]) if at < len(events) else last
            on = sorted(key for key, count in active.items() if count > 0)
            claims = tuple(number for number, main in on if main)
            minor = tuple(number for number, main in on if not main and number not in claims)
            yield _Piece(printable(text[position:stop], lines=True), claims=claims, minor=minor)
            position = stop
    if position < len(text):
        yield _Piece("", gap=len(text) - position)
