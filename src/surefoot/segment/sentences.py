"""Where sentences end inside a *run*: a paragraph, list item or table row, so never across a blank line.

Every run of end punctuation is a candidate. Its surroundings decide: an abbreviation, initial, enumerator,
decimal, file name, quotation or citation marker. Where they say nothing, the library sentencex decides, which
did best in the comparison of ``docs/splitters.md``. Every look around a candidate is bounded, so time is
linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable
from typing import Final

from sentencex import get_sentence_boundaries

from surefoot.segment.abbreviations import BEFORE_NAME, BEFORE_NUMBER, CLOCK, SAYING, STARTERS, TRAILING, WHEN

__all__ = ["MARKERS", "only_markers", "split_run"]

_LOOK = 64  # code points looked at on either side of a candidate
_LIBRARY_LOOK: Final = 400  # code points before a candidate that the library reads
_QUOTE_LOOK = 400  # code points within which the end of a quotation is looked for

_FINAL = "。！？｡︒؟۔।॥։።፧។៕᙮꓿⁇⁈⁉‼᠃𑁇"  # end a sentence whatever follows
_CLOSERS = "\"'”’“‘»«›‹)\\]}*_~`」』）】》〉］｝〕"
_CANDIDATE = re.compile(rf"[.!?…．{_FINAL}]+(?:[ \u00a0]\.(?![^\W_]))*[{_CLOSERS}]*")
_OPENERS = "\"'“‘„«‹([{*_~`¿¡「『（【《〈［｛〔‚"
_QUOTES = frozenset("\"'”’“»›」』》")

MARKERS = (
    r"(?:\[\[?\^?\d{1,4}(?:\s?[,;–-]\s?\^?\d{1,4}){0,40}\]?\]|\[\^[^\]\s]{1,60}\]"
    r"|\[(?i:docs?|documents?|chunks?|sources?|refs?|passages?|contexts?|citations?|cite)\b[^\]\n]{0,200}\]"
    r"|【[^】\n]{1,120}】"
    r"|\((?i:sources?|docs?|documents?|chunks?|refs?|passages?)(?::|\s\d)[^()\n]{0,240}\)"
    r"|<sup>[^<>\n]{1,40}</sup>|[⁰¹²³⁴-⁹]{1,6})(?:\([^()\s]{1,400}\))?"
)
"""Pattern of one citation marker: as much of the forms of :mod:`surefoot.citations` as boundaries need."""

_EMOJI = r"[\U0001F000-\U0001FAFF☀-➿⬀-⯿\uFE0F\u200D\U000E0020-\U000E007F]"
# What may follow the end of a sentence and still be part of it; one line break is allowed before a marker.
_TAIL = re.compile(
    rf"(?:[^\S\n]{{0,8}}\n?[^\S\n]{{0,8}}{MARKERS}[*_]{{0,3}}\.?|[^\S\n]{{0,8}}{_EMOJI}{{1,40}})"
)
_HAS_MARKER = re.compile(MARKERS)
_ONLY_MARKERS = re.compile(rf"\s*(?:{MARKERS}[\s,;.]{{0,8}}){{1,200}}")
_STATES = ("CA", "MT", "MS")  # "in Santa Barbara, CA. It offers"
_CODE = re.compile(r"`[^`\n]{1,300}`")
_WORD = re.compile(r"[^\W_][\w'’]{0,40}")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,3}\.){1,6}[^\W\d_]{1,3}")


def only_markers(line: str) -> bool:
    """Whether ``line`` consists of citation markers."""
    return len(line) <= 4000 and _ONLY_MARKERS.fullmatch(line) is not None


def split_run(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Sentences of the run ``text[start:end]``.

    Returns:
        Ascending spans without white space at the ends; they cover every other character of the run.
    """
    spans: list[tuple[int, int]] = []
    at = first = _skip_space(text, start, end)
    code = [found.span() for found in _CODE.finditer(text, first, end)]
    while at < end and (match := _CANDIDATE.search(text, at, end)):
        at = match.end()
        before = bisect(code, (match.start(), end)) - 1
        if before >= 0 and code[before][1] > match.start():
            at = max(at, code[before][1])
        elif not _plainly_inside(text, first, at, end):
            stop = _settle(text, first, match.start(), at, end)
            if stop is not None:
                spans.append((first, stop))
                first = _skip_space(text, stop, end)
                at = max(first, at)
    last = first + len(text[first:end].rstrip())
    return [*spans, (first, last)] if first < last else spans


def _plainly_inside(text: str, first: int, stop: int, end: int) -> bool:
    """The frequent cases that need no second look: "3.5", "a.b", and "e.g. apples" after a capital."""
    if stop + 2 >= end or text[stop - 1] not in ".!?":
        return False
    char = text[stop]
    if char == " ":
        return "a" <= text[stop + 1] <= "z" and text[stop + 2].islower() and text[first].isupper()
    return "a" <= char <= "z" or "0" <= char <= "9"


def _skip_space(text: str, at: int, end: int) -> int:
    while at < end and text[at].isspace():
        at += 1
    return at


def _settle(text: str, first: int, start: int, stop: int, end: int) -> int | None:
    """End of the sentence whose end punctuation is ``text[start:stop]``; ``None`` if it continues."""
    tail = stop
    marked = False
    near = text[stop : stop + 2].lstrip()[:1]
    while not (near.isascii() and near.isalnum()) and (more := _TAIL.match(text, tail, end)) is not None:
        tail = more.end()
        marked = marked or _HAS_MARKER.search(more[0]) is not None
    after = _skip_space(text, tail, end)
    if after >= end:
        return None  # the end of the run ends the sentence anyway
    if marked and text[after].islower() and not _starts_lower(text, first, end):
        # "[2] says that ..." opens the next sentence: the marker is its subject
        tail, after = stop, _skip_space(text, stop, end)
    elif marked and text[after] in ",;:)":
        return None
    final = text[start] in _FINAL or text[stop - 1] in _FINAL
    ends = _ends_final(text, stop, after) if final else _ends(text, first, start, stop, tail, after, end)
    return tail if ends else None


def _ends_final(text: str, stop: int, after: int) -> bool:
    """Whether unambiguous end punctuation ends the sentence: not before a quoting particle or a comma."""
    if text[after] in "，、；,;：）)」』":
        return False
    closed = text[stop - 1] in "」』）】》〉”"
    return not (closed and after == stop and text[after] in "とっってなのがをはに")


def _ends(text: str, first: int, start: int, stop: int, tail: int, after: int, end: int) -> bool:
    """Whether ``. ! ? …`` at ``text[start:stop]`` ends the sentence that began at ``first``."""

    def library() -> bool:
        # The library reads some texts otherwise on purpose: markers taken into the sentence, closing and
        # opening marks, and open quotations or parentheses.
        if tail > start + len(run) or begin > after or word.lower() in STARTERS:
            return True
        if _open_quote(text, max(first, stop - _QUOTE_LOOK), stop, "("):
            return True
        # It does not see the whole run: after an unpaired quotation mark it would not break anywhere.
        low = max(first, after - _LIBRARY_LOOK)
        found = get_sentence_boundaries("en", text[low : min(end, after + _LOOK)])
        return any(_skip_space(text, low + boundary["start_index"], end) == after for boundary in found)

    run = text[start:stop].rstrip(_CLOSERS.replace("\\]", "]"))
    quoted = not _QUOTES.isdisjoint(text[start + len(run) : stop])
    if after == stop:
        return _ends_glued(text, first, start, stop, run, end)
    begin = after
    while begin < end and begin < after + 8 and text[begin] in _OPENERS:
        begin += 1
    following = text[begin : begin + 1]
    match = _WORD.match(text, begin, end)
    word = match[0] if match else ""
    if following.islower() and not (word[1:] and not word.islower() and word[1].isupper()):
        if quoted or after != begin or not _starts_lower(text, first, end):
            return False  # a sentence begins with a small letter only where the text has no capitals
        left = _word_before(text, first, start)
        known = any(left.lower() in group for group in (BEFORE_NAME, BEFORE_NUMBER, TRAILING, CLOCK))
        return (run == "." or run[0] in "!?") and len(left) > 1 and left.isalpha() and not known
    if following in (",", ";", ":", ")", "]"):
        return False
    if quoted and match and (verb := _WORD.match(text, min(match.end() + 1, end), end)) and verb[0] in SAYING:
        return False  # "Why?" Bob asked
    if _in_open_quote(text, first, start, stop, end):
        return False
    if run == ".":
        return tail > stop or _dot_ends(text, first, start, following, match, library)
    if set(run) <= {".", "…"}:
        if text[start - 1 : start] in ("[", "(", '"', "“", "'", "‘"):
            return False
        before = text[max(first, start - 2) : start].rstrip()
        return bool(before) and not before.endswith((",", ";", ":")) and not following.isdigit()
    return library()


def _ends_glued(text: str, first: int, start: int, stop: int, run: str, end: int) -> bool:
    """Whether a sentence ends though the next one follows without a space ("euros.It is")."""
    following = text[stop]
    before = text[start - 1] if start > first else ""
    if _caseless(following):
        return _caseless(before) or run[0] in "!?"  # "Inc.制造" continues, "합니다.수수료" does not
    if len(set(run)) > 1 or (run[0] == "." and len(run) > 1):
        return False
    if not following.isupper() or not (before.isalnum() or before == ")"):
        return False
    left = text[max(first, start - _LOOK) : start].split()[-1]
    nxt = _WORD.match(text, stop, end)
    if nxt is None or any(c in left for c in "/@=&<>_\\:`"):
        return False
    word = nxt[0]
    follower = text[nxt.end() : nxt.end() + 1]
    if follower not in ("", " ", "\n", ",") or (len(word) > 1 and not word[1:].islower()):
        return False
    if run[0] in "!?":
        return left.isalpha() and len(left) > 1
    last = left.rsplit(".", 1)[-1]
    if last.endswith(")"):
        return "()" not in left and len(word) > 1  # "(UNWTO).Countries", not "f().Result"
    starter = word.lower() in STARTERS
    if last.isdigit() and len(last) == 4 and left == last:
        return len(word) > 1 and starter  # "in 1945.The"
    plain = len(last) > 1 and last.isalpha() and last.islower()
    return plain and (left == last or starter or left.split(".", 1)[0].istitle())


def _starts_lower(text: str, first: int, end: int) -> bool:
    """Whether the sentence at ``first`` begins with a small letter that is not a brand name's."""
    word = _WORD.match(text, first, end)
    return word is not None and word[0].islower() and word[0][0].isalpha()


def _open_quote(text: str, low: int, stop: int, bracket: str = "") -> str:
    """The mark that closes what is open at ``stop``: a quotation or, if asked for, a parenthesis."""
    if text.count('"', low, stop) % 2:
        return '"'
    if text.count("“", low, stop) > text.count("”", low, stop):
        return "”"
    return ")" if bracket and text.count("(", low, stop) > text.count(")", low, stop) else ""


def _in_open_quote(text: str, first: int, start: int, stop: int, end: int) -> bool:
    """Inside a quotation that continues after a comma: ``"I came. I saw," he wrote``."""
    mark = _open_quote(text, max(first, start - _QUOTE_LOOK), stop)
    close = text.find(mark, stop, min(end, stop + _QUOTE_LOOK)) if mark else -1
    if close < 0:
        return False
    after = _skip_space(text, close + 1, end)
    return after < end and text[after].islower() and text[close - 1] in ",!?"


def _word_before(text: str, first: int, start: int) -> str:
    """The word before the full stop at ``start``, without opening brackets and marks."""
    near = text[max(first, start - _LOOK) : start]
    if not near or near[-1].isspace():
        return ""
    word = near.rsplit(None, 1)[-1]
    at = max(map(word.rfind, "([{\"“‘'/–—"))
    return word[at + 1 :].lstrip("*_~`")


def _dot_ends(
    text: str,
    first: int,
    start: int,
    following: str,
    match: re.Match[str] | None,
    library: Callable[[], bool],
) -> bool:
    """Whether a single full stop at ``start`` ends the sentence; ``match`` is the word that follows."""
    before = _word_before(text, first, start)
    lower = before.lower()
    word = match[0] if match else ""
    follower = text[match.end() : match.end() + 1] if match else ""
    # "A." and "No." may be an initial or an abbreviation themselves
    dotted = follower == "." and (len(word) == 1 or word.lower() in BEFORE_NUMBER)
    adverb = follower == "," and word.endswith("ly")  # "Additionally, ..."
    starter = adverb or (word.lower() in STARTERS and not dotted)
    if not before:
        return start > first + 1  # tokenised text: "the play . Then"
    if lower in BEFORE_NAME:
        return before in _STATES and (starter or text[start - 4 : start - 2] == ", ")
    if _is_enumerator(text, first, start, before):
        return False
    if lower in CLOCK:
        return word.lower() not in WHEN and not following.isdigit()
    if lower in BEFORE_NUMBER:
        numbered = following.isdigit() or following == "§" or (len(word) == 1 and not starter)
        named = before[0].isupper() and following.isupper() and lower not in ("no", "art", "add")
        return not (numbered or (named and not starter))
    if lower in TRAILING:
        return lower == "etc" or starter or _caseless(following)
    letter = len(before) == 1 and before.isalpha() and not _caseless(before)
    # "Ph. Eur.", "Wm. Shakespeare"
    short = len(before) == 2 and before.isalpha() and before[0].isupper() and before[1].islower()
    if starter or letter or short or _DOTTED.fullmatch(before):
        return starter
    return library()


def _is_enumerator(text: str, first: int, start: int, before: str) -> bool:
    """``1.``, ``a.`` or ``IV.`` at the start of a sentence or after a colon or semicolon."""
    number = before.isdigit() and len(before) <= 3
    roman = len(before) <= 4 and set(before.lower()) <= set("ivx")
    if not (number or roman or len(before) == 1):
        return False
    left = text[max(first, start - _LOOK) : start - len(before)].rstrip()
    while left.endswith(("*", "_", "(")):
        left = left.rstrip("*_(").rstrip()
    return not left or left[-1] in ":;"


def _caseless(char: str) -> bool:
    """A letter of a script without capitals: Chinese, Arabic, Devanagari, Hangul ..."""
    return char.isalpha() and not char.isupper() and not char.islower()
