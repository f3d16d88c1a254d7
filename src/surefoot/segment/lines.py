"""Lines of plain or lightly marked-up text: which belong together, and the sentences of a source.

A line break inside a paragraph ends a sentence in a list of short lines ("Fee: 5 euros") but not in text that
was wrapped at a column. Sources are read line by line without a Markdown parser, so megabytes cost little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

from surefoot.segment.abbreviations import BEFORE_NAME, UNFINISHED
from surefoot.segment.sentences import only_markers, split_run

__all__ = ["MAX_SENTENCE", "BlockKind", "Lines", "join_lines", "same_length", "scan_blocks", "sentence_spans"]
__all__ += ["split_row", "strip_bullet", "trim"]

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

_WRAP = 60  # list items are usually shorter, lines of wrapped text usually longer
_BREAKS = re.compile("[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_UNREADABLE = re.compile("[\0\ud800-\udfff]")

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
_HARD_BREAKS = ("\\", ":", "：", "<br>", "<br/>")


def same_length(text: str) -> str:
    """``text`` with every line break a newline, and no NUL or lone surrogate; no position moves."""
    return _UNREADABLE.sub("\ufffd", _BREAKS.sub("\n", text.replace("\r\n", "\t\n")))


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


def join_lines(text: str, lines: Sequence[tuple[int, int]]) -> Lines:
    """Runs of a paragraph, made of lines that belong together.

    Args:
        text: after :func:`same_length`.
        lines: trimmed spans of the paragraph's lines, without container prefixes; none is empty.
    """
    runs = list(lines[:1])
    for index in range(1, len(lines)):
        width = max(end - begin for begin, end in lines[max(0, index - 4) : index + 4])
        if _continues(text, lines[index - 1], lines[index], width):
            runs[-1] = (runs[-1][0], lines[index][1])
        else:
            runs.append(lines[index])
    return runs


def _continues(text: str, above: tuple[int, int], line: tuple[int, int], width: int) -> bool:
    """Whether the sentence of the line ``above`` may go on in ``line``."""
    upper = text[max(above[0], above[1] - 80) : above[1]]
    if line[1] - line[0] <= 400 and only_markers(text[slice(*line)]):
        return True
    if text[above[1] : above[1] + 2] == "  " or upper.endswith(_HARD_BREAKS):
        return False
    last_word = _LAST_WORD.search(upper)
    word = last_word[1].lower() if last_word else ""
    if upper.endswith("."):
        if word in BEFORE_NAME:
            return True
    elif upper.endswith((",", "-", "(", "–")) or word in UNFINISHED:
        return True
    elif text[line[0]].islower():
        return not _OPENS_LINE.match(text, *line)
    first_word = len(text[line[0] : min(line[1], line[0] + 40)].split(None, 1)[0])
    wrapped = above[1] - above[0] >= _WRAP and above[1] - above[0] + 1 + first_word > width
    return wrapped and not (_OPENS_LINE.match(text, *line) and _FINAL_END.search(upper))


def sentence_spans(text: str) -> Lines:
    """Sentences of a source, as spans of code points.

    A blank line, a bullet, a heading and a table row start a new sentence. Bullets, heading marks, rules,
    code fences and outer pipes are left out; a table row is one sentence. A sentence is cut after
    :data:`MAX_SENTENCE` code points, at white space where there is any. Thai is only split at line breaks,
    ``? !`` and that limit: its spaces separate phrases as well as sentences.

    Returns:
        Ascending, disjoint spans without white space at the ends. They cover every other character that is
        not markup. Time is linear in the text.
    """
    plain = same_length(text)
    spans: Lines = []
    if plain.startswith(">") or "\n>" in plain or "\n >" in plain:
        plain = _QUOTES.sub(lambda match: " " * len(match[0]), plain)
    for kind, lines in scan_blocks(plain):
        runs = join_lines(plain, lines) if kind is BlockKind.PROSE else lines
        for run in runs:
            for span in split_run(plain, *run) if kind is BlockKind.PROSE else (run,):
                _cut(plain, *span, spans)
    return spans


def scan_blocks(plain: str, start: int = 0, end: int | None = None) -> Iterator[tuple[BlockKind, Lines]]:
    """Blocks of ``plain[start:end]``, told by the first characters of each line.

    Args:
        plain: after :func:`same_length`.
        start: where a line begins.
        end: where a line ends; ``None`` for the end of the text.

    Yields:
        The kind, and the trimmed spans of the lines without markup; rows and headings have one line.
    """
    block: Lines = []
    in_list = False
    kind = BlockKind.PROSE
    at, size = start, len(plain) if end is None else end
    while at < size:
        stop = plain.find("\n", at, size)
        stop = size if stop < 0 else stop
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


def _without_hashes(text: str, start: int, end: int) -> int:
    """End of a heading without the ``#`` that close it, if a space stands before them."""
    title = text[start:end].rstrip("#")
    return start + len(title.rstrip()) if title[-1:].isspace() else end


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut(text: str, start: int, end: int, spans: Lines) -> None:
    """Append ``(start, end)`` in pieces of at most :data:`MAX_SENTENCE` code points."""
    while end - start > MAX_SENTENCE:
        stop = start + MAX_SENTENCE
        at = next((at for at in range(stop, start + MAX_SENTENCE // 2, -1) if text[at].isspace()), 0)
        if (
            not at
        ):  # no space: at least keep a character and its combining marks, joiners and modifiers together
            at = next((at for at in range(stop, stop - 16, -1) if not _joins(text, at)), stop - 16)
        piece = trim(text, start, at)
        if piece[0] < piece[1]:
            spans.append(piece)
        start = trim(text, at, end)[0]
    if start < end:
        spans.append((start, end))


def _joins(text: str, at: int) -> bool:
    """Whether the character at ``at`` modifies the one before it."""
    joiner = "\u200d" in text[at - 1 : at + 1]
    return joiner or re.match("[\u0300-\u036f\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]", text[at]) is not None
