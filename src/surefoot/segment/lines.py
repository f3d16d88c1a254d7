"""Lines of plain or lightly marked-up text: which belong together, and the sentences of a source.

:func:`join_lines` undoes hard wrapping: a line break inside a paragraph ends a sentence in a list of short
lines ("Fee: 5 euros"), and does not in text wrapped at a column. :func:`sentence_spans` reads a whole
source in one pass over its lines, without a Markdown parser, so that megabytes cost little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

from surefoot.segment.abbreviations import BEFORE_NAME, UNFINISHED
from surefoot.segment.sentences import only_markers, split_run

__all__ = [
    "MAX_SENTENCE",
    "BlockKind",
    "Lines",
    "join_lines",
    "same_length",
    "scan_blocks",
    "sentence_spans",
    "split_row",
    "strip_bullet",
    "trim",
]

Lines = list[tuple[int, int]]
"""Trimmed spans of the lines of one block, without bullets, quote marks and the like."""


class BlockKind(Enum):
    """What a block of text is."""

    PROSE = "prose"
    ROW = "row"
    HEADER_ROW = "header row"
    HEADING = "heading"
    CODE = "code"


MAX_SENTENCE = 1000
"""Code points after which a sentence of a source is cut."""

_WRAP = 60  # lines of a list are usually shorter than this, lines of wrapped text usually longer
_BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_SURROGATE = re.compile("[\ud800-\udfff]")

_BULLET = re.compile(r"(?:[-*+•‣◦▪▫●○■□–—·⁃∙➢➤►▶][^\S\n]{1,40}(?:\[[ xX]\][^\S\n]{1,8})?|[•‣◦▪●⁃](?=\w))")
_LETTER = re.compile(r"(?:[a-zA-Z]|[ivx]{1,5})\)[^\S\n]{1,8}(?=\S)")
_NUMBER = re.compile(r"(\d{1,3})[.)][^\S\n]{1,8}(?=\S)")
_QUOTES = re.compile(r"^[^\S\n]{0,3}(?:>[^\S\n]{0,3}){1,40}", re.MULTILINE)
_QUOTE_MARKS = re.compile(r"(?:>[^\S\n]{0,3}){1,40}")
_INNER_QUOTE = re.compile(r">[^\S\n]{1,3}(?=[^\W\d])")
_HEADING = re.compile(r"#{1,6}[^\S\n]{1,40}")
_RULE = re.compile(r"[-*_=~+|:\s]{2,}|`{3,}[\w+#.-]{0,40}\s*|~{3,}[\w+#.-]{0,40}\s*|[-=*_]")
_LAST_WORD = re.compile(r"([^\W\d_]{1,20})\.?$")
_FINAL_END = re.compile(r"[.!?…。！？।؟۔][\"'”’»)\]*_`」』]{0,6}$")
_OPENS_LINE = re.compile(r"[*_]{2}\S|[\U0001F300-\U0001FAFF☀-➿]|\(?[a-z0-9]{1,3}\)\s|\d{1,3}\.\s")


def same_length(text: str) -> str:
    """``text`` with every line break a newline, and no NUL or lone surrogate; no position moves."""
    if "\r" in text:
        text = text.replace("\r\n", "\t\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if not text.isascii():
        for char in _BREAKS:
            if char in text:
                text = text.replace(char, "\n")
        text = _SURROGATE.sub("\ufffd", text)
    else:
        for char in _BREAKS[:5]:
            if char in text:
                text = text.replace(char, "\n")
    return text


def strip_bullet(text: str, start: int, end: int) -> int:
    """Position after the list bullet at ``start``, or ``start`` when there is none."""
    match = _BULLET.match(text, start, end) or _LETTER.match(text, start, end)
    return match.end() if match and match.end() < end else start


def split_row(text: str, start: int, end: int) -> tuple[int, int]:
    """``text[start:end]`` without the pipes at the ends of a table row, trimmed."""
    while start < end and (text[start].isspace() or text[start] == "|"):
        start += 1
    while end > start and (
        text[end - 1].isspace() or (text[end - 1] == "|" and text[end - 2 : end - 1] != "\\")
    ):
        end -= 1
    return start, end


def join_lines(text: str, lines: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of one paragraph: lines that belong together, for :func:`surefoot.segment.sentences.split_run`.

    Args:
        text: after :func:`same_length`.
        lines: trimmed non-empty spans of the lines of the paragraph, without container prefixes.
    """
    if len(lines) < 2:
        return list(lines)
    runs: list[tuple[int, int]] = []
    start, last = lines[0]
    for index in range(1, len(lines)):
        line = lines[index]
        width = max(end - begin for begin, end in lines[max(0, index - 4) : index + 4])
        if not _continues(text, lines[index - 1], line, width):
            runs.append((start, last))
            start = line[0]
        last = line[1]
    runs.append((start, last))
    return runs


def _continues(text: str, above: tuple[int, int], line: tuple[int, int], width: int) -> bool:
    """Whether the sentence of the line ``above`` may go on in ``line``."""
    upper = text[max(above[0], above[1] - 80) : above[1]]
    first = text[line[0]]
    if line[1] - line[0] <= 400 and only_markers(text[line[0] : line[1]]):
        return True
    if text[above[1] : above[1] + 2] == "  " or upper.endswith(("\\", ":", "：", "<br>", "<br/>")):
        return False
    last_word = _LAST_WORD.search(upper)
    word = last_word[1].lower() if last_word else ""
    if upper.endswith("."):
        if word in BEFORE_NAME:
            return True
    elif upper.endswith((",", "-", "(", "–")) or word in UNFINISHED:
        return True
    elif first.islower():
        return not _OPENS_LINE.match(text, line[0], line[1])
    first_word = 0
    while line[0] + first_word < line[1] and first_word < 40 and not text[line[0] + first_word].isspace():
        first_word += 1
    wrapped = above[1] - above[0] >= _WRAP and above[1] - above[0] + 1 + first_word > width
    if not wrapped:
        return False
    return not _OPENS_LINE.match(text, line[0], line[1]) or not _FINAL_END.search(upper)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Sentences of a source, as spans of code points.

    Plain text and light Markdown: a blank line, a bullet, a heading and a table row begin something new;
    bullets, heading marks, rules, code fences and outer pipes are left out. A table row is one sentence.
    A sentence is cut after :data:`MAX_SENTENCE` code points, at white space where there is any. Spaces do
    not end a Thai sentence, since they separate phrases too: only line breaks, ``? !`` and the cut do.

    Returns:
        Ascending, disjoint spans without white space at the ends; every non-space character that is not
        markup lies in one of them. Time is linear in the text.
    """
    plain = same_length(text)
    spans: list[tuple[int, int]] = []
    if plain.startswith(">") or "\n>" in plain or "\n >" in plain:
        plain = _QUOTES.sub(_spaces, plain)
    for kind, lines in scan_blocks(plain):
        if kind is BlockKind.PROSE:
            for start, end in join_lines(plain, lines):
                for span in split_run(plain, start, end):
                    _cut(plain, *span, spans)
        else:
            _cut(plain, *lines[0], spans)
    return spans


def scan_blocks(plain: str, start: int = 0, end: int | None = None) -> Iterator[tuple[BlockKind, Lines]]:
    """Blocks of ``plain[start:end]`` by the look of each line alone.

    Args:
        plain: after :func:`same_length`.
        start: a line begins there.
        end: a line ends there; ``None`` for the end of the text.

    Yields:
        The kind, and the trimmed spans of the lines without markup; rows and headings have one line.
    """
    block: Lines = []
    in_list = False
    kind = BlockKind.PROSE
    at, size = start, len(plain) if end is None else end
    while at < size:
        stop = plain.find("\n", at, size)
        if stop < 0:
            stop = size
        begin, final = trim(plain, at, stop)
        at = stop + 1
        first = plain[begin] if begin < final else ""
        if first.isalpha() and plain[begin + 1 : begin + 2] != ")":
            block.append((begin, final))  # the usual line: no markup to look for
            continue
        if first == ">" and (marks := _QUOTE_MARKS.match(plain, begin, final)):
            begin = marks.end()
            first = plain[begin] if begin < final else ""
        body, fresh = begin, True
        kind = BlockKind.PROSE
        if not first:
            in_list = False
        elif final - begin < 400 and first in "-*_=~+|:`" and _RULE.fullmatch(plain, begin, final):
            body = final
        elif first == "|":
            kind = BlockKind.ROW
            body, final = split_row(plain, begin, final)
        elif first == "#" and (heading := _HEADING.match(plain, begin, final)):
            kind = BlockKind.HEADING
            body, final = heading.end(), _without_hashes(plain, heading.end(), final)
        elif (marked := strip_bullet(plain, begin, final)) > begin:
            body, in_list = marked, True
        elif (number := _NUMBER.match(plain, begin, final)) and (in_list or not block or number[1] == "1"):
            body, in_list = number.end(), True
        else:
            fresh = False
        if fresh and block:
            yield BlockKind.PROSE, block
            block = []
        if body >= final:
            continue
        if plain[body] == ">" and (quote := _INNER_QUOTE.match(plain, body, final)):
            body = quote.end()
        if kind is not BlockKind.PROSE:
            yield kind, [(body, final)]
        elif body < final:
            block.append((body, final))
    if block:
        yield BlockKind.PROSE, block


def _spaces(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def _without_hashes(text: str, start: int, end: int) -> int:
    stop = end
    while stop > start and text[stop - 1] == "#":
        stop -= 1
    if stop == end or not text[stop - 1].isspace():
        return end
    return trim(text, start, stop)[1]


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    """Append ``(start, end)`` in pieces of at most :data:`MAX_SENTENCE` code points."""
    while end - start > MAX_SENTENCE:
        stop = start + MAX_SENTENCE
        floor = start + MAX_SENTENCE // 2
        at = stop
        while at > floor and not text[at].isspace():
            at -= 1
        if at == floor:
            at = stop
            # no space: at least keep a character and its combining marks, joiners and modifiers together
            while at > stop - 16 and _joins(text, at):
                at -= 1
        piece = trim(text, start, at)
        if piece[0] < piece[1]:
            spans.append(piece)
        start = at
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        spans.append((start, end))


def _joins(text: str, at: int) -> bool:
    char, before = text[at], text[at - 1]
    return (
        "\u0300" <= char <= "\u036f"
        or "\ufe00" <= char <= "\ufe0f"
        or char == "\u200d"
        or before == "\u200d"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
    )
