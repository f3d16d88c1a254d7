"""Where sentences end inside one stretch of running text.

The unit of work is a *run*: a paragraph, a list item, a line of a table; it never crosses a blank line.
Every run of end punctuation is a candidate. It is settled by what stands around it (abbreviation,
initial, enumerator, decimal, file name, quotation, citation marker). Where that says nothing, sentencex
decides, the library that did best in the comparison of ``docs/splitters.md``. All lookups around a candidate
are bounded, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sentencex import get_sentence_boundaries

from surefoot.segment.abbreviations import BEFORE_NAME, BEFORE_NUMBER, CLOCK, SAYING, STARTERS, TRAILING, WHEN

__all__ = ["MARKERS", "only_markers", "split_run"]

_LOOK = 64  # code points looked at on either side of a candidate
_LIBRARY_LOOK: Final = 400  # code points before a candidate that the library reads
_QUOTE_LOOK = 400  # code points within which an opened quotation is followed

_FINAL = "。！？｡︒؟۔।॥։።፧။៕᙮꓿⁇⁈⁉‼᠃𑁇"  # end a sentence whatever follows
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
    """Whether ``line`` holds citation markers and nothing else."""
    return _ONLY_MARKERS.fullmatch(line[:4000]) is not None and len(line) <= 4000


def split_run(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Sentences of ``text[start:end]``, a run of text without blank lines.

    Returns:
        Trimmed spans, ascending, that cover every non-space character of the run.
    """
    spans: list[tuple[int, int]] = []
    first = _skip_space(text, start, end)
    code = _code_spans(text, first, end)
    at = first
    while at < end and (match := _CANDIDATE.search(text, at, end)):
        at = match.end()
        if code and (inside := _enclosing(code, match.start())):
            at = max(at, inside)
            continue
        if _plainly_inside(text, first, at, end):
            continue
        stop = _settle(text, first, match.start(), at, end)
        if stop is None:
            continue
        spans.append((first, stop))
        first = _skip_space(text, stop, end)
        at = max(first, at)
    if first < end:
        last = end
        while last > first and text[last - 1].isspace():
            last -= 1
        if last > first:
            spans.append((first, last))
    return spans


def _plainly_inside(text: str, first: int, stop: int, end: int) -> bool:
    """The frequent cases that need no second look: "3.5", "a.b", and "e.g. apples" under a capital."""
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


def _code_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    if text.find("`", start, end) < 0:
        return []
    return [m.span() for m in _CODE.finditer(text, start, end)][::-1]


def _enclosing(spans: list[tuple[int, int]], at: int) -> int:
    """End of the span around ``at``, else 0; ``spans`` run backwards and lose what lies behind."""
    while spans and spans[-1][1] <= at:
        spans.pop()
    return spans[-1][1] if spans and spans[-1][0] <= at else 0


def _library_breaks(text: str, first: int, after: int, end: int) -> bool:
    """Whether sentencex begins a sentence at ``after``, given the sentence before it and a few words more.

    It is not shown the whole run: a quotation mark without its partner would keep it from breaking
    anywhere behind.
    """
    low = max(first, after - _LIBRARY_LOOK)
    found = get_sentence_boundaries("en", text[low : min(end, after + _LOOK)])
    return any(_skip_space(text, low + boundary["start_index"], end) == after for boundary in found)


def _settle(text: str, first: int, start: int, stop: int, end: int) -> int | None:
    """Where the sentence ends whose end punctuation is ``text[start:stop]``; ``None`` if it goes on."""
    tail = stop
    marked = False
    near = text[stop : stop + 2].lstrip()[:1]
    while not (near.isascii() and near.isalnum()) and (more := _TAIL.match(text, tail, end)) is not None:
        tail = more.end()
        marked = marked or _HAS_MARKER.search(more[0]) is not None
    after = _skip_space(text, tail, end)
    if after >= end:
        return None  # the end of the run closes the sentence anyway
    if tail > stop:
        if marked and text[after].islower() and not _starts_lower(text, first, end):
            # "[2] says that ..." opens the next sentence: the marker is its subject
            tail, after = stop, _skip_space(text, stop, end)
        elif marked and text[after] in ",;:)":
            return None
    if text[start] in _FINAL or text[stop - 1] in _FINAL:
        return tail if _ends_final(text, stop, after) else None
    return tail if _ends(text, first, start, stop, tail, after, end) else None


def _ends_final(text: str, stop: int, after: int) -> bool:
    """Whether unambiguous end punctuation ends the sentence: not before a quoting particle or a comma."""
    if text[after] in "，、；,;：）)」』":
        return False
    closed = text[stop - 1] in "」』）】》〉”"
    return not (closed and after == stop and text[after] in "とっってなのがをはに")


def _ends(text: str, first: int, start: int, stop: int, tail: int, after: int, end: int) -> bool:
    """Whether ``. ! ? …`` at ``text[start:stop]`` ends the sentence that began at ``first``."""

    def library() -> bool:
        # Markers taken into the sentence, closing and opening marks, and quotations or parentheses left
        # open are what the library reads otherwise, on purpose.
        if (
            tail > start + len(run)
            or begin > after
            or word.lower() in STARTERS
            or _left_open(text, first, stop)
        ):
            return True
        return _library_breaks(text, first, after, end)

    run = text[start:stop].rstrip(_CLOSERS.replace("\\]", "]"))
    quoted = stop > start + len(run) and not _QUOTES.isdisjoint(text[start + len(run) : stop])
    glued = after == stop
    if glued:
        return _ends_glued(text, first, start, stop, run, end)
    begin = after
    while begin < end and begin < after + 8 and text[begin] in _OPENERS:
        begin += 1
    following = text[begin : begin + 1]
    word_match = _WORD.match(text, begin, end)
    word = word_match[0] if word_match else ""
    if following.islower() and not (word[1:] and not word.islower() and word[1].isupper()):
        return _ends_before_lower(text, first, start, run, quoted, after, begin, end)
    if following in (",", ";", ":", ")", "]"):
        return False
    if quoted and _goes_on_after_quote(text, word_match, end):
        return False
    if _in_open_quote(text, first, start, stop, end):
        return False
    if run == ".":
        return tail > stop or _dot_ends(text, first, start, following, word, word_match, library)
    if run[0] in ".…" and set(run) <= {".", "…"}:
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
        return _caseless(before) or run[0] in "!?"  # "Inc.制造" goes on, "합니다.수수료" does not
    if (
        len(set(run)) > 1
        or not following.isupper()
        or not (before.isalnum() or before == ")")
        or (run[0] == "." and len(run) > 1)
    ):
        return False
    token_start = start
    while token_start > max(first, start - _LOOK) and not text[token_start - 1].isspace():
        token_start -= 1
    left = text[token_start:start]
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
    if last.isdigit() and len(last) == 4 and left == last:
        return len(word) > 1 and word.lower() in STARTERS  # "in 1945.The"
    if len(last) < 2 or not last.isalpha():
        return False
    return last.islower() and (left == last or word.lower() in STARTERS or left.split(".", 1)[0].istitle())


def _ends_before_lower(
    text: str, first: int, start: int, run: str, quoted: bool, after: int, begin: int, end: int
) -> bool:
    """Whether a sentence ends before a small letter: only where the text knows no capitals."""
    if quoted or after != begin or not _starts_lower(text, first, end):
        return False
    if run in (".", "!", "?") or run[0] in "!?":
        word = _word_before(text, first, start)
        return len(word) > 1 and word.isalpha() and not _abbreviated(word.lower())
    return False


def _starts_lower(text: str, first: int, end: int) -> bool:
    """Whether the sentence at ``first`` begins with a small letter that is not a brand name's."""
    word = _WORD.match(text, first, end)
    return word is not None and word[0].islower() and word[0][0].isalpha()


def _goes_on_after_quote(text: str, word: re.Match[str] | None, end: int) -> bool:
    """``"Why?" Bob asked``: a name and a verb of saying."""
    if word is None:
        return False
    verb = _WORD.match(text, min(word.end() + 1, end), end)
    return verb is not None and verb[0] in SAYING


def _in_open_quote(text: str, first: int, start: int, stop: int, end: int) -> bool:
    """Inside a quotation that goes on with a comma: ``"I came. I saw," he wrote``."""
    low = max(first, start - _QUOTE_LOOK)
    if text.count('"', low, stop) % 2:
        close = text.find('"', stop, min(end, stop + _QUOTE_LOOK))
    elif text.count("“", low, stop) > text.count("”", low, stop):
        close = text.find("”", stop, min(end, stop + _QUOTE_LOOK))
    else:
        return False
    if close < 0:
        return False
    after = _skip_space(text, close + 1, end)
    return after < end and text[after].islower() and text[close - 1] in ",!?"


def _left_open(text: str, first: int, stop: int) -> bool:
    """Whether a quotation or a parenthesis that began in the sentence is open at ``stop``."""
    low = max(first, stop - _QUOTE_LOOK)
    return (
        text.count('"', low, stop) % 2 == 1
        or text.count("“", low, stop) > text.count("”", low, stop)
        or text.count("(", low, stop) > text.count(")", low, stop)
    )


def _word_before(text: str, first: int, start: int) -> str:
    """The word that the full stop at ``start`` closes, without opening brackets and marks."""
    near = text[max(first, start - _LOOK) : start]
    if not near or near[-1].isspace():
        return ""
    word = near.rsplit(None, 1)[-1]
    if word.isalnum():
        return word
    at = max(map(word.rfind, "([{\"“‘'/–—"))
    return word[at + 1 :].lstrip("*_~`")


def _abbreviated(lower: str) -> bool:
    return lower in BEFORE_NAME or lower in BEFORE_NUMBER or lower in TRAILING or lower in CLOCK


def _dot_ends(
    text: str,
    first: int,
    start: int,
    following: str,
    word: str,
    word_match: re.Match[str] | None,
    library: Callable[[], bool],
) -> bool:
    """Whether a single full stop at ``start`` ends the sentence, given the word that follows."""
    before = _word_before(text, first, start)
    lower = before.lower()
    next_dotted = word_match is not None and text[word_match.end() : word_match.end() + 1] == "."
    # "A." and "No." may be an initial or an abbreviation themselves
    starter = word.lower() in STARTERS and not (
        next_dotted and (len(word) == 1 or word.lower() in BEFORE_NUMBER)
    )
    if (
        word_match is not None
        and word.endswith("ly")
        and text[word_match.end() : word_match.end() + 1] == ","
    ):
        starter = True  # "Additionally, ..."
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
        named = (
            before[0].isupper() and following.isupper() and not starter and lower not in ("no", "art", "add")
        )
        return not (numbered or named)
    if lower in TRAILING:
        if lower == "etc":
            return True
        return starter or _caseless(following)
    if len(before) == 1 and before.isalpha() and not _caseless(before):
        return starter
    if _DOTTED.fullmatch(before):
        return starter
    # "Ph. Eur.", "Wm. Shakespeare"
    short = len(before) == 2 and before.isalpha() and before[0].isupper() and before[1].islower()
    return starter or (not short and library())


def _is_enumerator(text: str, first: int, start: int, before: str) -> bool:
    """``1.``, ``a.`` or ``IV.`` at the start of a sentence or after a colon or semicolon."""
    number = before.isdigit() and len(before) <= 3
    roman = len(before) <= 4 and set(before.lower()) <= set("ivx")
    if not (number or roman or len(before) == 1):
        return False
    at = start - len(before)
    while at > first and (text[at - 1].isspace() or text[at - 1] in "*_("):
        at -= 1
    return at <= first or text[at - 1] in ":;"


def _caseless(char: str) -> bool:
    """A letter of a script without capitals: Chinese, Arabic, Devanagari, Hangul ..."""
    return char.isalpha() and not char.isupper() and not char.islower()
