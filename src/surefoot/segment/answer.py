"""An answer as segments with exact offsets: blocks by Markdown, sentences inside them, and their kinds.

Block structure comes from markdown-it-py (CommonMark plus tables), of which only the block rules run and
only the line maps are used. Whatever its tokens leave out (nesting beyond its limit, input too large for
it) is read line by line instead, so that nothing that was said can escape a check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from surefoot.schema import ClaimKind
from surefoot.segment.kinds import classify, is_title
from surefoot.segment.lines import (
    BlockKind,
    Lines,
    join_lines,
    same_length,
    scan_blocks,
    sentence_spans,
    split_row,
    strip_bullet,
    trim,
)
from surefoot.segment.sentences import split_run

__all__ = ["Segment", "segment_answer", "sentence_spans"]

_MAX_MARKDOWN = 200_000  # code points; a longer answer is read line by line
_MAX_LINES = 5_000  # likewise: a block takes the parser much longer than a character
_MAX_NESTING = 20
_PROSE_FENCES = frozenset({"", "text", "txt", "plain", "plaintext", "quote"})
_MARKDOWN_FENCES = frozenset({"markdown", "md", "mdx"})
_CONTAINER = re.compile(r"[ \t]{0,80}(?:(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]{0,80}){0,40}")
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]{1,8}(?=\S)")
_TAG_LINE = re.compile(r"(?:</?[a-zA-Z][^<>\n]{0,200}>\s{0,8}){1,20}")
_BOLD_LINE = re.compile(r"(\*\*|__)(?=\S)([^\n]{1,400})(?<=\S)\1[:：]?")
_CODE_CHARS = re.compile(r"[{}\[\]();=<>|\\$#_/&]")


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence, list item sentence, table row, heading or code block of an answer.

    Attributes:
        start, end: ``answer[start:end]`` has no white space at its ends, no bullet, no heading marks and
            no outer table pipes. Emphasis marks and citation markers stay in.
        kind: only ``claim`` is to be checked.
        block: index of the paragraph, list item, heading, table row or code block that it lies in.
    """

    start: int
    end: int
    kind: ClaimKind
    block: int


@dataclass(frozen=True, slots=True)
class _Block:
    kind: BlockKind
    lines: Lines
    listed: bool = False


def segment_answer(text: str, *, min_words: int = 4) -> tuple[Segment, ...]:
    """Split ``text`` into segments; every character that is neither white space nor markup is in one.

    HTML comments, link-free tags on a line of their own, code fences and table rules count as markup.
    A fenced block marked ``markdown`` is read as Markdown; one without a language, or an indented block,
    that reads as prose is prose, so that fencing an answer does not exempt it. A citation marker behind
    a full stop, or on a line of its own, belongs to the sentence before it.

    Args:
        text: any text; nothing is raised for lone surrogates, NUL or deep nesting.
        min_words: see :func:`surefoot.segment.kinds.classify`.

    Returns:
        Disjoint segments in order of position. Time is linear in the length of ``text``.
    """
    plain = _mask_comments(same_length(text))
    blocks, plain = _blocks(plain)
    blocks.sort(key=lambda block: block.lines[0])
    segments: list[Segment] = []
    number = 0
    for index, block in enumerate(blocks):
        last = index == len(blocks) - 1
        for part in _parts(plain, block):
            made = list(_segments(plain, part, number, min_words, followed=not last or part is not block))
            if made:
                segments += made
                number += 1
    return tuple(segments)


def _segments(plain: str, block: _Block, number: int, min_words: int, *, followed: bool) -> Iterator[Segment]:
    if block.kind is not BlockKind.PROSE:
        start, end = block.lines[0][0], block.lines[-1][1]
        if block.kind is BlockKind.ROW:
            kind = classify(plain[start:end], min_words=min_words, tabular=True)
        else:
            kind = ClaimKind.CODE if block.kind is BlockKind.CODE else ClaimKind.HEADING
        yield Segment(start, end, kind, number)
        return
    runs = join_lines(plain, block.lines)
    for index, (start, end) in enumerate(runs):
        heads = followed or index < len(runs) - 1
        if heads and not block.listed and _is_bold_title(plain[start:end]):
            yield Segment(start, end, ClaimKind.HEADING, number)
            continue
        for begin, stop in split_run(plain, start, end):
            yield Segment(begin, stop, classify(plain[begin:stop], min_words=min_words), number)


def _is_bold_title(line: str) -> bool:
    match = _BOLD_LINE.fullmatch(line) if len(line) <= 420 else None
    return match is not None and match[1] not in match[2] and is_title(match[2])


def _parts(plain: str, block: _Block) -> list[_Block]:
    """A paragraph split at bullets that Markdown does not know, pipe rows, and lines of tags."""
    if block.kind is not BlockKind.PROSE:
        return [block]
    parts: list[_Block] = []
    lines: Lines = []
    listed = block.listed
    changed = False
    for start, end in block.lines:
        body, stop, kind = strip_bullet(plain, start, end), end, BlockKind.PROSE
        if plain[start] == "|" and plain[end - 1] == "|":
            kind = BlockKind.ROW
            body, stop = split_row(plain, start, end)
        elif plain[start] == "<" and end - start < 2000 and _TAG_LINE.fullmatch(plain, start, end):
            body = stop = end
        if body == start:
            lines.append((start, end))
            continue
        changed = True
        if lines:
            parts.append(_Block(BlockKind.PROSE, lines, listed))
            lines = []
        if kind is BlockKind.ROW:
            if body < stop and any(char not in "-:| \t" for char in plain[body:stop]):
                parts.append(_Block(kind, [(body, stop)]))
        elif body < stop:
            lines, listed = [(body, stop)], True
    if not changed:
        return [block]
    if lines:
        parts.append(_Block(BlockKind.PROSE, lines, listed))
    return parts


def _mask_comments(plain: str) -> str:
    """``plain`` with the HTML comments that a reader of the page would not see as spaces."""
    at = plain.find("<!--")
    if at < 0:
        return plain
    pieces: list[str] = []
    done = 0
    while at >= 0:
        stop = plain.find("-->", at + 4)
        if stop < 0:
            break
        stop += 3
        line = plain.rfind("\n", done, at) + 1 or done
        body = plain[at:stop]
        # in the middle of a line a comment ends with its paragraph, else it is not one; code shows it
        if (plain[line:at].strip() == "" or "\n\n" not in body) and plain.count("`", line, at) % 2 == 0:
            pieces += plain[done:at], re.sub(r"[^\n]", " ", body)
            done = stop
        at = plain.find("<!--", stop)
    return "".join(pieces) + plain[done:]


def _blocks(plain: str) -> tuple[list[_Block], str]:
    """The blocks of an answer, and the text with quote marks and other container prefixes as spaces."""
    if len(plain) > _MAX_MARKDOWN or plain.count("\n") > _MAX_LINES:
        return [_Block(kind, lines) for kind, lines in scan_blocks(plain)], plain
    reader = _Reader(plain)
    reader.read(0, len(plain), nested=False)
    return reader.blocks, reader.masked()


_PARSER = (
    MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    .enable("table")
    .disable(["reference", "html_block"])
)
# Only the block rules: line breaks and NUL are dealt with already, and inline markup is not needed.
_PARSER.core.ruler.enableOnly(["block"])


class _Reader:
    """Turns block tokens into blocks, by their line maps."""

    def __init__(self, plain: str) -> None:
        self.plain = plain
        self.blocks: list[_Block] = []
        self._blank: list[tuple[int, int]] = []

    def masked(self) -> str:
        """The text with what stands before the content of each line as spaces."""
        pieces: list[str] = []
        done = 0
        for start, end in sorted(self._blank):
            if end > start >= done:
                pieces += self.plain[done:start], " " * (end - start)
                done = end
        return "".join(pieces) + self.plain[done:]

    def read(self, base: int, end: int, *, nested: bool) -> None:
        """Append the blocks of ``plain[base:end]``, which begins and ends at line ends."""
        source = self.plain[base:end]
        bounds = [base]
        at = source.find("\n")
        while at >= 0:
            bounds.append(base + at + 1)
            at = source.find("\n", at + 1)
        bounds.append(end + 1)
        lines = [(start, stop - 1) for start, stop in pairwise(bounds)]
        covered = bytearray(len(lines))
        items: list[tuple[str, int]] = []
        tokens = _PARSER.parse(source)
        header = False
        for index, token in enumerate(tokens):
            first, stop = token.map or (0, 0)
            stop = min(stop, len(lines))
            if token.type in ("list_item_open", "blockquote_open"):
                items.append((token.type, first))
            elif token.type in ("list_item_close", "blockquote_close"):
                items.pop()
            elif token.type in ("thead_open", "thead_close"):
                header = token.type == "thead_open"
                if token.map:
                    covered[first : min(stop + 1, len(lines))] = b"\1" * (min(stop + 1, len(lines)) - first)
            elif token.type == "tr_open":
                self._row(lines[first], header, items, first)
                covered[first] = 1
            elif token.type == "hr":
                covered[first:stop] = b"\1" * (stop - first)
            elif token.type in ("fence", "code_block"):
                self._code(token, lines[first:stop], nested=nested)
                covered[first:stop] = b"\1" * (stop - first)
            elif (
                token.type == "inline"
                and token.map
                and tokens[index - 1].type in ("paragraph_open", "heading_open")
            ):
                opened = tokens[index - 1]
                first, stop = opened.map or token.map
                stop = min(stop, len(lines))
                if self._inline(token, opened, lines[first:stop], listed=any(i[0][0] == "l" for i in items)):
                    covered[first:stop] = b"\1" * (stop - first)
        self._gaps(lines, covered)

    def _gaps(self, lines: Lines, covered: bytearray) -> None:
        """Read line by line what no token accounts for."""
        at = covered.find(0)
        while at >= 0:
            stop = covered.find(1, at)
            stop = len(lines) if stop < 0 else stop
            begin, end = lines[at][0], lines[stop - 1][1]
            for kind, found in scan_blocks(self.plain, begin, end):
                self.blocks.append(_Block(kind, found))
            at = covered.find(0, stop)

    def _inline(self, token: Token, opened: Token, lines: Lines, *, listed: bool) -> bool:
        """Add a paragraph or heading; false when its text cannot be laid over the lines."""
        heading = opened.type == "heading_open"
        content = token.content.split("\n")
        if heading and not opened.markup.startswith("#"):
            lines = lines[:-1]  # the underline
        found: Lines = []
        while len(lines) > len(content) and not self.plain[slice(*lines[-1])].strip():
            lines = lines[:-1]
        while len(lines) > len(content) and not self.plain[slice(*lines[0])].strip():
            lines = lines[1:]
        if len(lines) != len(content):
            return False
        for (begin, stop), part in zip(lines, content, strict=True):
            part = part.strip()
            raw = self.plain[begin:stop].rstrip()
            if heading and opened.markup.startswith("#") and not raw.endswith(part):
                raw = raw.rstrip("#").rstrip()
            if not raw.endswith(part):
                return False
            at = begin + len(raw) - len(part)
            self._blank.append((begin, at))
            if part:
                found.append((at, at + len(part)))
        if listed and found and (box := _CHECKBOX.match(self.plain, *found[0])):
            found[0] = (box.end(), found[0][1])
        if found:
            self.blocks.append(_Block(BlockKind.HEADING if heading else BlockKind.PROSE, found, listed))
        return True

    def _row(self, line: tuple[int, int], header: bool, items: list[tuple[str, int]], number: int) -> None:
        start, end = line
        if items and (prefix := _CONTAINER.match(self.plain, start, end)):
            whole = any(kind == "list_item_open" and first == number for kind, first in items)
            start = prefix.end() if whole or ">" in prefix[0] else start
        start, end = split_row(self.plain, start, end)
        if start < end:
            self.blocks.append(_Block(BlockKind.HEADER_ROW if header else BlockKind.ROW, [(start, end)]))

    def _code(self, token: Token, lines: Lines, *, nested: bool) -> None:
        """Add a code block, or what it holds where that is Markdown or prose."""
        language = ""
        if token.type == "fence":
            language = token.info.strip().split(" ")[0].lower()
            closed = len(lines) > 1 and self.plain[slice(*lines[-1])].strip(" \t>").startswith(token.markup)
            lines = lines[1:-1] if closed else lines[1:]
        begin, end = (lines[0][0], lines[-1][1]) if lines else (0, 0)
        start, stop = trim(self.plain, begin, end)
        if start == stop:
            return
        if language in _MARKDOWN_FENCES and not nested:
            self.read(begin, end, nested=True)
        elif language in _MARKDOWN_FENCES or (language in _PROSE_FENCES and _reads_as_prose(token.content)):
            self.blocks.extend(_Block(kind, found) for kind, found in scan_blocks(self.plain, begin, end))
        else:
            self.blocks.append(_Block(BlockKind.CODE, [(start, stop)]))


def _reads_as_prose(content: str) -> bool:
    """Sentences rather than code: words, an end mark, and next to none of the signs of code."""
    sample = content[:4000].strip()
    if len(sample.split()) < 4 or not re.search(r"[.!?。！？](?:[\s\"')\]*]|$)", sample):
        return False
    return len(_CODE_CHARS.findall(sample)) <= 0.02 * len(sample)
