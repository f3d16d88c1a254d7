"""The HTML report: complete, self-contained, and inert whatever the answer and the sources hold."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import report_builders as build
from surefoot.report import html as module
from surefoot.report.html import render_html, write_html
from surefoot.report.wording import printable
from surefoot.schema import Citation, CitationStatus, Reason, Source, TruthfulnessReport, Verdict

VOID = {
    "meta",
    "link",
    "img",
    "br",
    "hr",
    "input",
    "base",
    "embed",
    "source",
    "area",
    "col",
    "track",
    "wbr",
    "param",
}
ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<a href='javascript:alert(1)'>x</a>",
    "javascript:alert(1)",
    "<!-- --!> <iframe srcdoc='<script>1</script>'></iframe>",
    "]]><svg/onload=alert(1)>",
    "{{ 7*7 }}{% raw %}",
    "\u2028</script>\u2029",
    "&lt;script&gt;&#0;\x00\x1b[31m\ud800\udc00\udfff\u202e",
    "</div></details></main></body></html><base href=//evil>",
    "<textarea><title></title></textarea><noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
)


class Page(HTMLParser):
    """The elements of a page, with the text inside each."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[int] = []
        self.texts: dict[int, str] = {}
        self.children: dict[int, list[int]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        index = len(self.elements)
        self.elements.append((tag, dict(attrs)))
        self.texts[index] = ""
        self.children[index] = []
        for parent in self.open:
            self.children[parent].append(index)
        if tag not in VOID and tag != "rect":
            self.open.append(index)

    def handle_endtag(self, tag: str) -> None:
        if tag == "rect":
            return
        assert self.elements[self.open.pop()][0] == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        for index in self.open:
            self.texts[index] += data

    def by_id(self, name: str) -> int:
        return next(i for i, (_, attrs) in enumerate(self.elements) if attrs.get("id") == name)

    def with_class(self, name: str, inside: int | None = None) -> list[int]:
        among = range(len(self.elements)) if inside is None else self.children[inside]
        return [i for i in among if name in (self.elements[i][1].get("class") or "").split()]

    def shape(self) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """Every element with its attributes; whether a marker is long shows in its class, and is left out."""
        return [
            (tag, tuple(sorted((name, (value or "").removesuffix(" long")) for name, value in attrs.items())))
            for tag, attrs in self.elements
        ]


def report_with(text: str) -> TruthfulnessReport:
    """``text`` wherever a report can hold text of a stranger."""
    source = Source(text, text, text, {text: text})
    citation = Citation(text, 0, len(text), text, text, CitationStatus.NOT_SUPPORTING, 0.1, proposal=text)
    stray = replace(citation, start=-1, end=-1, status=CitationStatus.UNRESOLVED)
    claim = build.claim(
        text,
        text,
        Verdict.UNSUPPORTED,
        Reason.NO_SUPPORTING_EVIDENCE,
        support=0.1,
        evidence=(build.evidence(source, text),),
        citations=(citation,),
        proposals=(text, "elsewhere " + text),
        detail=text,
    )
    return build.report(
        answer=text,
        question=text,
        sources=(source, Source("other " + text, text)),
        claims=(claim,),
        citations=(citation, stray),
        model=text,
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_adds_no_element_and_no_attribute(attack: str) -> None:
    page = Page(render_html(report_with(attack), title=attack))
    assert page.shape() == Page(render_html(report_with("harmless"), title="harmless")).shape()


def test_hostile_text_is_shown_as_text() -> None:
    for attack in ATTACKS:
        page = Page(render_html(report_with(attack)))
        said = next(page.texts[i] for i in page.with_class("said"))
        assert said == printable(attack, lines=True)


def test_the_page_has_no_handlers_and_no_resources() -> None:
    page = Page(render_html(build.report()))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 1
    assert tags.count("style") == 1
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"} & set(tags)
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert "style" not in attributes, tag
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith("#"), tag
    text = render_html(build.report())
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text)


def test_the_content_security_policy_allows_what_is_there_and_nothing_else() -> None:
    text = render_html(build.report())
    page = Page(text)
    policy = next(
        str(a["content"]) for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    def sha256(tag: str) -> str:
        match = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert match
        return f"'sha256-{base64.b64encode(hashlib.sha256(match.group(1).encode()).digest()).decode()}'"

    assert rules == {
        "default-src": "'none'",
        "style-src": sha256("style"),
        "script-src": sha256("script"),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


@given(st.text(st.characters(), min_size=1, max_size=120))
@settings(max_examples=60)
def test_any_text_gives_the_same_elements_and_utf_8(text: str) -> None:
    document = render_html(report_with(text), title=text)
    document.encode()
    plain = render_html(report_with("harmless"), title="harmless")
    assert Page(document).shape() == Page(plain).shape()


def answer_text(page: Page) -> str:
    """What stands in the answer, apart from symbols and words for screen readers."""
    answer = page.by_id("answer")
    extras = [page.texts[i] for name in ("tick", "vh") for i in page.with_class(name, answer)]
    text = page.texts[answer]
    for extra in extras:
        assert extra in text
        text = text.replace(extra, "", 1)
    return text


def test_the_answer_is_whole_and_its_claims_are_marked() -> None:
    report = build.report()
    page = Page(render_html(report))
    assert answer_text(page) == report.answer
    marks = page.with_class("claim", page.by_id("answer"))
    verdicts = [
        (page.elements[i][1]["data-claim"], (page.elements[i][1]["class"] or "").split()[1]) for i in marks
    ]
    assert verdicts == [
        (str(number), str(claim.verdict)) for number, claim in enumerate(report.claims, start=1)
    ]
    assert [page.texts[i] for i in page.with_class("tick", page.by_id("answer"))] == ["✗", "✓", "○", "?"]
    assert " (contradicted)" in page.texts[marks[0]]
    assert [page.texts[i] for i in page.with_class("cite", page.by_id("answer"))] == ["[1]", "[2]"]


def test_every_claim_has_a_card_with_its_evidence_and_citations() -> None:
    page = Page(render_html(build.report()))
    for number in range(1, 6):
        page.by_id(f"claim-{number}")
    first, second = (page.texts[page.by_id(f"claim-{number}")] for number in (1, 2))
    for words in (
        "✗ contradicted",
        "support 0.03 · against 0.94",
        "A customer may return any item within 10 days of delivery.",
        "a number differs from the evidence",
        "does not support the claim (0.03)",
    ):
        assert words in first
    assert "refund-policy does" in second
    assert "Could cite: shipping.md" in page.texts[page.by_id("claim-4")]


def test_links_lead_to_elements_that_exist() -> None:
    page = Page(render_html(build.report()))
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    targets = {(attributes["href"] or "")[1:] for _, attributes in page.elements if "href" in attributes}
    assert targets
    assert targets <= ids
    assert len(ids) == sum("id" in attributes for _, attributes in page.elements)


def source_texts(page: Page) -> list[str]:
    return [
        page.texts[i] for i in page.with_class("text", page.by_id("sources")) if page.elements[i][0] == "div"
    ]


def test_sources_are_whole_with_their_evidence_marked() -> None:
    report = build.report()
    page = Page(render_html(report))
    assert source_texts(page) == [source.text for source in report.sources]
    marked = [(page.elements[i][1]["data-claims"], page.texts[i]) for i in page.with_class("ev")]
    assert marked == [
        ("1", "A customer may return any item within 10 days of delivery."),
        ("2", "The refund is paid within 5 working days of the return."),
        ("4", "Delivery takes 3 days."),
    ]


def test_overlapping_evidence_is_marked_for_every_claim() -> None:
    source = Source("s", "abcdefghij")
    answer = "First claim. Second claim."
    claims = (
        build.claim(answer, "First claim.", Verdict.SUPPORTED, evidence=(build.evidence(source, "bcdef"),)),
        build.claim(
            answer,
            "Second claim.",
            Verdict.SUPPORTED,
            evidence=(
                build.evidence(source, "efgh"),
                build.evidence(source, "ef"),
                build.evidence(source, "j"),
            ),
        ),
    )
    page = Page(render_html(build.report(answer=answer, sources=(source,), claims=claims, citations=())))
    assert source_texts(page) == [source.text]
    assert [(page.elements[i][1]["data-claims"], page.texts[i]) for i in page.with_class("ev")] == [
        ("1", "bcd"),
        ("1 2", "ef"),
        ("2", "gh"),
        ("2", "j"),
    ]


def test_a_big_source_is_shown_around_its_evidence() -> None:
    fact = "The needle is here."
    text = "x" * 300_000 + fact + "y" * 400_000
    source, other = Source("big", text), Source("big too", "z" * 250_000)
    claim = build.claim(fact, fact, Verdict.SUPPORTED, evidence=(build.evidence(source, fact),))
    document = render_html(build.report(answer=fact, sources=(source, other), claims=(claim,), citations=()))
    assert len(document) < 60_000
    page = Page(document)
    gaps = [page.texts[i] for i in page.with_class("gap")]
    assert gaps == [
        "[… 298,000 characters not shown …]",
        "[… 398,000 characters not shown …]",
        "[… 248,000 characters not shown …]",
    ]
    assert [page.texts[i] for i in page.with_class("ev")] == [fact]


def test_many_sources_that_nothing_rests_on_are_counted_instead() -> None:
    sources = tuple(Source(f"s{number}", "text") for number in range(1_000))
    page = Page(render_html(build.empty_report(Reason.EMPTY_ANSWER, sources=sources)))
    assert len(page.with_class("source")) == 200
    assert "800 more sources, on which nothing rests, are not shown." in page.texts[page.by_id("sources")]


def test_large_sources_together_keep_the_page_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOTAL_SHOWN", 50_000)
    sources = tuple(Source(f"s{number}", "t" * 20_000) for number in range(10))
    document = render_html(build.empty_report(Reason.EMPTY_ANSWER, sources=sources))
    assert len(document) < 80_000
    assert document.count("18,000 characters not shown") == 10


def test_undefined_figures_say_why() -> None:
    page = Page(render_html(build.empty_report(Reason.NO_CHECKABLE_CLAIM, answer="Hello!")))
    values = [page.texts[i] for i in page.with_class("value")]
    assert values.count("undefined (no checkable claim)") == 6
    assert not [value for value in values if value in ("0.000", "1.000", "None", "nan")]
    assert answer_text(page) == "Hello!"


def test_a_degraded_report_warns() -> None:
    degraded = Page(render_html(build.report(degraded=True, reasons=(Reason.CHECKER_FAILED,))))
    fine = Page(render_html(build.report()))
    assert [degraded.elements[i][1].get("role") for i in degraded.with_class("degraded")] == ["alert"]
    assert fine.with_class("degraded") == []


def test_claims_that_overlap_are_all_listed() -> None:
    answer = "One two three four."
    claims = (
        build.claim(answer, answer, Verdict.SUPPORTED),
        build.claim(answer, "two three", Verdict.UNSUPPORTED),
    )
    page = Page(render_html(build.report(answer=answer, claims=claims, citations=())))
    assert answer_text(page) == answer
    assert len(page.with_class("card")) == 2


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def palettes() -> list[dict[str, str]]:
    css = render_html(build.report()).split("<style>", 1)[1].split("</style>", 1)[0]
    roots = re.findall(r":root \{([^}]*)\}", css)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in roots[:2]]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(scheme: int) -> None:
    colours = palettes()[scheme]
    pairs = [(ink, paper) for ink in ("text", "muted") for paper in ("page", "card")]
    pairs += [("accent", "card"), ("text", "track"), ("muted", "track")]
    for verdict in Verdict:
        pairs += [(verdict, f"{verdict}-bg"), (verdict, "card"), ("text", f"{verdict}-bg")]
    for ink, paper in pairs:
        assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)


def test_the_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_html(build.report(), path)
    assert path.read_text(encoding="utf-8") == render_html(build.report())
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="none"):
        write_html(build.report(), tmp_path / "none" / "report.html")
