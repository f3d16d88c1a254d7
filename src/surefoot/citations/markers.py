"""Finds citation markers in an answer, in time linear in its length.

Every quantifier is bounded, and a candidate that is not a marker costs at most its own bounded length.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from surefoot.citations.keys import Reader, is_numeric
from surefoot.errors import ConfigurationError

__all__ = ["MAX_MARKERS", "Marker", "find_markers", "mask_spans"]

MAX_MARKERS = 10_000
"""Markers read from one answer; later ones are treated as text."""


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker as written.

    Attributes:
        start, end: ``answer[start:end] == text``, in code points.
        text: the marker with its brackets and link target.
        keys: what it names, as written. ``[1-3]`` gives ``("1", "2", "3")``; superscripts give plain digits.
    """

    start: int
    end: int
    text: str
    keys: tuple[str, ...]


_FENCE = re.compile(r"^[ \t>]{0,40}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_BLANK = re.compile(r"\n(?=[ \t]*\n)")


def mask_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Spans of Markdown code in ``text``: fenced blocks (to the end if unclosed) and inline code.

    As in CommonMark, a run of backticks closes at the next run of the same length in the same paragraph.
    Indented code is not recognised, since nested list items look the same.
    """
    spans: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(text):
        run, rest = match[1], match[2]
        if opened is None:
            if not (run[0] == "`" and "`" in rest):
                opened = (match.start(), run)
        elif run[0] == opened[1][0] and len(run) >= len(opened[1]) and not rest.strip():
            spans.append((opened[0], match.end()))
            opened = None
    if opened is not None:
        spans.append((opened[0], len(text)))
    fences = list(spans)
    runs = [(m.start(), m.end()) for m in re.finditer("`+", text) if not _inside(fences, m.start())]
    by_length: dict[int, list[int]] = {}
    for index, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(index)
    # Inline code ends with its paragraph, and a fence also ends the paragraph.
    stops = sorted([m.start() for m in _BLANK.finditer(text)] + [start for start, _ in fences])
    index = 0
    while index < len(runs):
        start, end = runs[index]
        same = by_length[end - start]
        later = bisect_right(same, index)
        index += 1
        if later == len(same) or text[start - 1 : start] == "\\":
            continue
        close = runs[same[later]]
        if bisect_left(stops, end) == bisect_left(stops, close[0]):
            spans.append((start, close[1]))
            index = same[later] + 1
    return tuple(sorted(spans))


def _inside(spans: Sequence[tuple[int, int]], position: int) -> bool:
    at = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return at >= 0 and position < spans[at][1]


_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SUP = "[⁰¹²³⁴⁵⁶⁷⁸⁹]"
_CANDIDATE = re.compile(
    r"\[\[(?P<double>[^\[\]\n]{1,240})\]\]"
    r"|[\[［](?P<square>[^\[\]［］\n]{1,240})[\]］]"
    r"|【(?P<lens>[^【】\n]{1,240})】"
    r"|[(（](?=\s{0,3}(?:see\b|doc|chunk|source|passage|ref|cit|context|excerpt|snippet|web|search))"
    r"(?P<paren>(?:[^()（）\n]|[(（][^()（）\n]{0,120}[)）]){2,240})[)）]"
    rf"|(?P<sup>{_SUP}{{1,6}}(?:[,;˒]{_SUP}{{1,6}}){{0,20}})",
    re.IGNORECASE,
)
_LINK = re.compile(r"\((?:[^()\n\s]|\([^()\n\s]{0,200}\)){0,2000}(?:\s{1,9}[\"'][^\"'\n]{0,200}[\"'])?\)")
_WORD_BEFORE = re.compile(r"[^\W\d]\w{0,38}$")
_EXPONENTED = r"inch|foot|feet|met(?:er|re)s?|miles?|yards?|acre|mol|sec|log|sin|cos|tan|chi"
"""Words whose superscript is an exponent."""


def find_markers(
    answer: str, *, pattern: str | re.Pattern[str] | None = None, known: Collection[str] = ()
) -> tuple[Marker, ...]:
    """Citation markers of ``answer``, in order, never overlapping.

    Forms: ``[1]``, ``[1, 2]``, ``[1-3]``, ``[^1]``, ``[1](url)``, ``[[1]]``, ``[Doc ...]`` and similar,
    ``(Source: ...)``, ``【1†source】`` and, for numbers in ``known``, superscripts after a word or full stop.
    Code, link texts, images, footnote definitions, check boxes and years are not markers. A number beyond
    the sources is one, so that it can be reported as unresolved.

    Args:
        answer: any text.
        pattern: a regular expression for a further form, which wins over a built-in one where they overlap.
            The group named ``key``, or the first group, or the whole match holds one key or several
            separated by commas. Empty matches are skipped. The caller answers for its running time.
        known: the keys that name a source, from :func:`known_keys`. Forms that need them (superscripts, bare
            ids in brackets) are not read without.

    Returns:
        At most :data:`MAX_MARKERS` markers of at most 50 keys; a longer list becomes one key as written.

    Raises:
        ConfigurationError: ``pattern`` does not compile, or is for bytes.
    """
    expression = None if pattern is None else _compile(pattern)  # reports a bad one even for an empty answer
    code = mask_spans(answer)
    reader = Reader(known)
    own: list[Marker] = []
    for match in expression.finditer(answer) if expression else ():
        if match.end() > match.start() and not _inside(code, match.start()):
            own.append(_marker(answer, match.start(), match.end(), reader.free(_group(match))))
            if len(own) == MAX_MARKERS:
                break
    taken = [(marker.start, marker.end) for marker in own]
    found: list[Marker] = []
    position = 0
    while len(own) + len(found) < MAX_MARKERS and (hit := _CANDIDATE.search(answer, position)):
        if _inside(code, hit.start()):
            position = code[bisect_right(code, hit.start(), key=lambda span: span[0]) - 1][1]
            continue
        marker, position = _read(answer, hit, reader)
        if marker is not None and not _overlaps(taken, marker):
            found.append(marker)
    return tuple(sorted(own + found, key=lambda marker: marker.start))


def _compile(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        expression = re.compile(pattern)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise ConfigurationError(f"citation pattern does not compile: {error}") from error
    if not isinstance(expression.pattern, str):
        raise ConfigurationError("citation pattern must be for text, not bytes")
    return expression


def _group(match: re.Match[str]) -> str:
    names = match.re.groupindex
    value: str | None = match["key"] if "key" in names else match[1] if match.re.groups else match[0]
    return (value or "").strip() or match[0]


def _marker(answer: str, start: int, end: int, keys: tuple[str, ...]) -> Marker:
    return Marker(start, end, answer[start:end], keys)


def _overlaps(taken: Sequence[tuple[int, int]], marker: Marker) -> bool:
    at = bisect_right(taken, marker.start, key=lambda span: span[1])
    return at < len(taken) and taken[at][0] < marker.end


def _read(answer: str, hit: re.Match[str], reader: Reader) -> tuple[Marker | None, int]:
    """The marker at ``hit`` or ``None``, and where to continue."""
    start, end, form = hit.start(), hit.end(), hit.lastgroup
    body = hit[form or 0]
    keys: tuple[str, ...] | None
    if form == "sup":
        keys = _superscript(answer, start, body, reader)
        return (_marker(answer, start, end, keys) if keys else None), end
    if form == "paren":
        keys = reader.paren(body)
    elif form == "lens":
        keys = reader.lenticular(body)
    else:
        if body.endswith("\\") and answer[start - 1 : start] == "\\":  # \[1\]
            start, body = start - 1, body[:-1]
        link = _LINK.match(answer, end)
        if link and answer[start - 1 : start] == "!":
            return None, link.end()
        keys = reader.square(body, linked=link is not None)
        if keys and not link and _not_prose(answer, start, end, body, keys, reader):
            keys = None
        end = link.end() if keys and link else end
    return (_marker(answer, start, end, keys), end) if keys else (None, hit.start() + 1)


def _not_prose(answer: str, start: int, end: int, body: str, keys: tuple[str, ...], reader: Reader) -> bool:
    """Whether a bracket that looks like a marker is a definition, a check box or an index expression."""
    before = answer[max(0, start - 40) : start]
    line = before.rpartition("\n")[2]
    opens = len(line) < 40 or start <= 40
    bare = body.strip().lstrip("^")
    if answer[end : end + 1] == ":" and opens and not line.strip(" \t>") and is_numeric(bare):
        return True  # "[1]: text of the footnote"
    if body.strip() in ("x", "X") and opens and re.fullmatch(r"[\s>]*(?:[-*+]|\d{1,9}[.)])\s+", line):
        return True
    if not is_numeric(bare):
        return False
    if re.search(r"=\s{0,9}$", before):
        return True
    word = _WORD_BEFORE.search(before)
    if word is None:
        return False
    name = word[0]
    index = name.isascii() and ((len(name) == 1 and name.islower()) or "_" in name.strip("_"))
    return index or (keys[0] == "0" and not reader.known("0"))


def _superscript(answer: str, start: int, body: str, reader: Reader) -> tuple[str, ...] | None:
    """Keys of a superscript; ``None`` for exponents (m², 10³) and numbers without a source."""
    keys = tuple(re.split("[,;˒]", body.translate(_SUPERSCRIPT)))
    if not all(reader.known(key) for key in keys):
        return None
    before = answer[max(0, start - 40) : start]
    if before[-1:] and before[-1] in '.!?,;:)]"”’»。！？':
        # "(a+b)²" and "1.²" are formulas.
        return keys if re.search(r"[^\W\d_]{3}[^\w\s]{1,3}$", before) else None
    word = _WORD_BEFORE.search(before)
    return keys if word and len(word[0]) >= 3 and not re.fullmatch(_EXPONENTED, word[0], re.I) else None
