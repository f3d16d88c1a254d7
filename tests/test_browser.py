"""The HTML report in a real browser: nothing of a stranger's runs, and people can find their way."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import report_builders as build
from surefoot.report.html import write_html
from surefoot.schema import Source, TruthfulnessReport, Verdict
from test_html import ATTACKS, report_with

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="needs playwright"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]

ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Opened:
    """A report in a page, with everything that the page complained about or asked for."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1200, "height": 800}, **options)
        self.page: Page = self.context.new_page()
        self.trouble: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    opened: list[Opened] = []

    def open_it(report: TruthfulnessReport, **options: Any) -> Opened:
        path = tmp_path / "report.html"
        write_html(report, path)
        opened.append(Opened(browser, path, reduced_motion="reduce", **options))
        return opened[-1]

    yield open_it
    for item in opened:
        item.context.close()


def chosen(page: Page) -> str | None:
    """Number of the claim that is chosen in the answer."""
    return page.locator("#answer a[aria-current=true]").get_attribute("data-claim")


@pytest.mark.parametrize("attack", range(len(ATTACKS)))
def test_nothing_of_a_stranger_runs(open_report: Any, attack: int) -> None:
    opened = open_report(report_with(ATTACKS[attack]))
    opened.page.locator("#answer a.claim").first.click()
    opened.page.locator("#toggle").click()
    assert opened.trouble == []
    assert opened.requests == [opened.page.url]
    assert opened.page.locator("script").count() == 1
    assert opened.page.locator("img, iframe, svg:not(.bar), base, textarea, form").count() == 0


def test_the_script_that_the_policy_allows_runs(open_report: Any) -> None:
    opened = open_report(build.report())
    assert "js" in (opened.page.locator("html").get_attribute("class") or "")
    assert opened.page.evaluate("getComputedStyle(document.querySelector('.panel')).borderRadius") == "12px"
    assert opened.trouble == []


def test_another_script_is_refused(open_report: Any) -> None:
    opened = open_report(build.report())
    opened.page.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s)"
    )
    assert opened.page.evaluate("window.ran") is None
    assert "Content Security Policy" in " ".join(opened.trouble)


def test_the_worst_claim_is_shown_first(open_report: Any) -> None:
    page = open_report(build.report()).page
    assert chosen(page) == "1"
    assert page.locator(".card:visible").count() == 1
    assert page.locator(".card:visible .badge").inner_text() == "✗ contradicted"


def test_choosing_a_claim_shows_its_evidence(open_report: Any) -> None:
    page = open_report(build.report()).page
    page.locator("#answer a.claim").nth(3).click()
    assert chosen(page) == "4"
    assert page.locator(".card:visible .said").inner_text() == "Delivery takes about a week."
    assert page.locator("mark.on").all_inner_texts() == ["Delivery takes 3 days."]
    assert "review" in (page.locator("mark.on").get_attribute("class") or "")
    page.locator("#answer a.claim").nth(2).click()
    assert page.locator("mark.on").count() == 0


def test_evidence_far_down_is_scrolled_into_view(open_report: Any) -> None:
    fact = "The bridge was closed for a week in May."
    sources = (Source("first", "filler text\n" * 400 + fact), Source("second", "more\n" * 300))
    claims = (build.claim(fact, fact, Verdict.SUPPORTED, evidence=(build.evidence(sources[0], fact),)),)
    report = build.report(answer=fact, sources=sources, claims=claims, citations=())
    for size in ({"width": 1200, "height": 700}, {"width": 420, "height": 700}):
        page = open_report(report).page
        page.set_viewport_size(size)
        page.locator("#answer a.claim").click()
        top, bottom, height = page.evaluate(
            "(() => { const box = document.querySelector('mark.on').getBoundingClientRect();"
            " return [box.top, box.bottom, innerHeight]; })()"
        )
        assert 0 <= top < bottom <= height


def test_the_keyboard_goes_from_claim_to_claim(open_report: Any) -> None:
    page = open_report(build.report()).page
    page.locator("#answer a.claim").first.focus()
    steps = [("ArrowRight", "2"), ("ArrowDown", "3"), ("ArrowLeft", "2"), ("End", "5"), ("ArrowRight", "5")]
    for key, number in [*steps, ("Home", "1"), ("ArrowUp", "1")]:
        page.keyboard.press(key)
        assert chosen(page) == number
        assert page.evaluate("document.activeElement.dataset.claim") == number
    page.keyboard.press("Tab")
    assert chosen(page) == "1"
    page.keyboard.press("Enter")
    assert chosen(page) == "2"


def test_focus_can_be_seen(open_report: Any) -> None:
    page = open_report(build.report()).page
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2


def test_all_claims_can_be_shown(open_report: Any) -> None:
    page = open_report(build.report()).page
    button = page.get_by_role("button", name="Show all claims")
    button.click()
    assert page.locator(".card:visible").count() == 5
    page.get_by_role("button", name="Show one claim").click()
    assert page.locator(".card:visible").count() == 1


def test_a_source_link_opens_its_source(open_report: Any) -> None:
    page = open_report(build.report()).page
    page.locator("#source-0 > summary").click()
    assert page.locator("#source-0").get_attribute("open") is None
    page.locator(".card:visible blockquote a").first.click()
    assert page.locator("#source-0").get_attribute("open") is not None


def test_without_javascript_it_is_a_list(open_report: Any) -> None:
    opened = open_report(build.report(), java_script_enabled=False)
    page = opened.page
    assert page.locator(".card:visible").count() == 5
    assert page.locator("mark.ev:visible").count() == 3
    assert page.locator("button:visible").count() == 0
    page.locator("#answer a.claim").nth(1).click()
    assert page.url.endswith("#claim-2")
    assert opened.trouble == []


def test_a_link_to_a_claim_chooses_it(browser: Browser, tmp_path: Path) -> None:
    write_html(build.report(), tmp_path / "r.html")
    opened = Opened(browser, tmp_path / "r.html")
    opened.page.goto((tmp_path / "r.html").as_uri() + "#claim-3")
    opened.page.reload()
    assert chosen(opened.page) == "3"
    opened.context.close()


def test_print_shows_every_claim(open_report: Any) -> None:
    page = open_report(build.report()).page
    page.emulate_media(media="print")
    assert page.locator(".card:visible").count() == 5
    assert page.locator(".card blockquote:visible").count() == 3
    assert page.locator("button:visible").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_follow_the_system(open_report: Any, scheme: str) -> None:
    page = open_report(build.report(), color_scheme=scheme).page
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in re.findall(r"\d+", colour)]
    assert (min(channels) > 200) if scheme == "light" else (max(channels) < 60)


@pytest.mark.parametrize("width", [320, 420, 700, 1000, 1600])
def test_nothing_overflows_sideways(open_report: Any, width: int) -> None:
    word = "unbreakable" * 40
    report = build.report()
    for shown in (report, report_with(word)):
        page = open_report(shown).page
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_roles_and_names_for_screen_readers(open_report: Any) -> None:
    page = open_report(build.report()).page
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("main").count() == 1
    for name in ("Answer", "Claims", "Sources"):
        assert page.get_by_role("region", name=name, exact=True).count() == 1
    assert page.get_by_role("link", name="Returns are free for members. (unsupported)").count() == 1
    assert page.get_by_role("article", name="Claim 1, contradicted").count() == 1
