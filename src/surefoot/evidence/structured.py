"""Records and tables read as sentences: ``{"opens": {"Monday": "9:00"}}`` says "opens Monday: 9:00".

A language model trained on sentences makes little of braces and pipes, and the words of a claim ("outdoor
seating") are not the words of a record (``"OutdoorSeating": true``). So each value of a JSON text is read
together with the keys that lead to it, and each row of a Markdown table together with its header. What is
*shown* stays as it stands in the source: every reading knows the span that it reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from surefoot.inference.text import clean
from surefoot.segment import sentence_spans

__all__ = ["Reading", "read_json", "read_tables"]

_LONGEST: Final = 20_000_000  # code points of a JSON text; a longer one is read as plain text
_PROSE: Final = 120
"""Code points from which a string is prose, to be read sentence by sentence."""

_TOKEN: Final = re.compile(
    r'\s*(?:(?P<mark>[{}\[\],:])|"(?P<text>(?:[^"\\\x00-\x1f]|\\.)*+)"|(?P<bare>[^\s{}\[\],:"]++))', re.DOTALL
)
_ESCAPE: Final = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_WORDS: Final = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_BARE: Final = {"true": "yes", "false": "no", "null": "none"}
_RULE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-{1,200}:?[ \t]*(?:\|[ \t]*:?-{1,200}:?[ \t]*){0,200}\|?[ \t]*")


@dataclass(frozen=True, slots=True)
class Reading:
    """A stretch ``source.text[start:end]`` and what it says in words."""

    start: int
    end: int
    text: str


def read_json(text: str) -> list[Reading] | None:
    """The values of a JSON text, or of one JSON text a line, each with the keys that lead to it.

    Args:
        text: any text.

    Returns:
        One reading a value, in order; a long string has one a sentence. ``None`` if the text is not JSON, or
        holds no record and no list: such a text is prose.
    """
    first = text.lstrip()[:1]
    if first not in ("{", "[") or len(text) > _LONGEST:
        return None
    if _parses(text):
        return list(_values(text, 0, len(text)))
    readings: list[Reading] = []
    at = 0
    for line in text.split("\n"):
        if line.strip():
            if line.strip()[0] not in "{[" or not _parses(line):
                return None
            readings.extend(_values(text, at, at + len(line)))
        at += len(line) + 1
    return readings


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(slots=True)
class _Level:
    """An open record or list: where in it the scan stands."""

    is_list: bool
    key: str = ""
    key_start: int = -1


def _values(text: str, start: int, end: int) -> Iterator[Reading]:
    """Walk the tokens of a valid JSON text; a stack, not recursion, since a stranger chose the nesting."""
    stack: list[_Level] = []
    expects_key = False
    while (token := _TOKEN.match(text, start, end)) is not None:
        start = token.end()
        mark = token["mark"]
        if mark in ("{", "["):
            stack.append(_Level(mark == "["))
            expects_key = mark == "{"
        elif mark in ("}", "]"):
            stack.pop()
            expects_key = False
        elif mark == ",":
            expects_key = not stack[-1].is_list
        elif mark == ":":
            expects_key = False
        elif expects_key:
            stack[-1].key = _in_words(_decode(token["text"])[0])
            stack[-1].key_start = token.start("text") - 1
        else:
            yield from _read_value(token, stack)


def _read_value(token: re.Match[str], stack: list[_Level]) -> Iterator[Reading]:
    quoted = token["text"] is not None
    value, places = _decode(token["text"]) if quoted else (_BARE.get(token["bare"], token["bare"]), None)
    start = token.start("text") if quoted else token.start("bare")
    if quoted and len(value) > _PROSE and len(spans := sentence_spans(value)) > 1:
        for first, last in spans:  # sentences speak for themselves: no keys before them
            begin, end = (first, last) if places is None else (places[first], places[last])
            yield Reading(start + begin, start + end, value[first:last])
        return
    # The places of list items are left out: as numbers they would be compared with those of a claim.
    path = " ".join(level.key for level in stack if level.key)
    value = " ".join(value.split()) or "none"
    said = f"{path}: {value}" if path else value
    inside = stack[-1] if stack else None
    begin = inside.key_start if inside is not None and not inside.is_list else start - quoted
    yield Reading(begin, token.end(), said if said[-1] in ".!?" else said + ".")


def _in_words(key: str) -> str:
    """``RestaurantsTakeOut`` and ``review_date`` as words; ``WiFi`` and ``iOS`` as they are."""
    words = _WORDS.findall(key)
    if not words or (len(words) == 2 and max(map(len, words)) <= 3 and "_" not in key):
        return key.strip()
    return " ".join(words)


def _decode(raw: str) -> tuple[str, list[int] | None]:
    """A JSON string in plain characters, and where each of them (and the end) stands in ``raw``.

    The places are ``None`` where nothing was escaped, so that they are the same.
    """
    if "\\" not in raw:
        return raw, None
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(raw):
        pieces.append(raw[at : match.start()])
        places.extend(range(at, match.start()))
        pieces.append(json.loads(f'"{match[0]}"'))
        places.append(match.start())
        at = match.end()
    pieces.append(raw[at:])
    places.extend(range(at, len(raw) + 1))
    # Halves of an escaped surrogate pair stay two characters here, so that places and characters agree.
    return clean("".join(pieces)), places


def read_tables(text: str) -> dict[int, Reading]:
    """The rows of the Markdown tables in ``text`` that have a header, by the start of their content.

    A row says ``header: cell`` for each cell that is not empty. The positions are those of
    :func:`~surefoot.segment.sentence_spans`, which leaves the outer pipes out.
    """
    if "|" not in text or "-" not in text:
        return {}
    rows: dict[int, Reading] = {}
    header: list[str] | None = None
    previous = ""
    at = 0
    for line in text.split("\n"):
        if "|" not in line:
            header = None
        elif header is None:
            if len(line) < 10_000 and "-" in line and "|" in previous and _RULE.fullmatch(line.rstrip("\r")):
                header = [cell.strip() for cell in _cells(previous)]
        else:
            cells = _cells(line)
            start = at + len(line) - len(line.lstrip(" \t|"))
            end = at + len(line.rstrip(" \t|\r"))
            pairs = zip(header, cells, strict=False)
            said = "; ".join(
                f"{name}: {cell.strip()}" if name else cell.strip() for name, cell in pairs if cell.strip()
            )
            if start < end and said:
                rows[start] = Reading(start, end, said + ".")
        previous = line
        at += len(line) + 1
    return rows


def _cells(line: str) -> list[str]:
    return line.strip().strip("|").split("|")
