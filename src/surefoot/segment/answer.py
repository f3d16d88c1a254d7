"""An answer as segments with exact offsets: blocks by Markdown, sentences inside them, and their kinds.

markdown-it-py (CommonMark with tables) finds the blocks; only its block rules run and only its line maps are
used. Lines that its tokens leave out, because of deep nesting or a very long answer, are read one by one
instead, so that no sentence escapes the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

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
    split_row,
    strip_bullet,
    trim,
)
from surefoot.segment.sentences import split_run

__all__ = ["Segment", "segment_answer"]

_MAX_MARKDOWN = 200_000  # code points; a longer answer is read line by line
_MAX_LINES = 5_000  # likewise: a block costs the parser much more than a character
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
        kind: only a ``claim`` is checked.
        block: index of its paragraph, list item, heading, table row or code block.
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

    HTML comments, lines of tags without text, code fences and table rules count as markup. A fenced block
    marked ``markdown`` is read as Markdown; one without a language, or an indented block, is prose if it
    reads as prose, so that a fence exempts nothing from the check. A citation marker after a full stop, or
    on a line of its own, belongs to the sentence before it.

    Args:
        text: any text; lone surrogates, NUL and deep nesting raise nothing.
        min_words: see :func:`surefoot.segment.kinds.classify`.

    Returns:
        Disjoint segments in order of position. Time is linear in the length of ``text``.
    """
    blocks, plain = _blocks(_mask_comments(same_length(text)))
    blocks.sort(key=lambda block: block.lines[0])
    segments: list[Segment] = []
    number = 0
    for index, block in enumerate(blocks):
        for part in _parts(plain, block):
            followed = index < len(blocks) - 1 or part is not block
            made = list(_segments(plain, part, number, min_words, followed=followed))
            segments += made
            number += bool(made)
    return tuple(segments)


def _segments(plain: str, block: _Block, number: int, min_words: int, *, followed: bool) -> Iterator[Segment]:
    if block.kind is not BlockKind.PROSE:
        start, end = block.lines[0][0], block.lines[-1][1]
        kind = ClaimKind.CODE if block.kind is BlockKind.CODE else ClaimKind.HEADING
        if block.kind is BlockKind.ROW:
            kind = classify(plain[start:end], min_words=min_words, tabular=True)
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
    match = _BOLD_LINE.fullmatch(line)
    return match is not None and match[1] not in match[2] and is_title(match[2])


def _parts(plain: str, block: _Block) -> list[_Block]:
    """A paragraph split at bullets that Markdown does not know, pipe rows, and lines of tags."""
    if block.kind is not BlockKind.PROSE:
        return [block]
    parts: list[_Block] = []
    fresh, listed = True, block.listed  # whether the next line begins a part, and whether a list does
    for start, end in block.lines:
        body, stop, kind = strip_bullet(plain, start, end), end, BlockKind.PROSE
        if plain[start] == "|" and plain[end - 1] == "|":
            kind = BlockKind.ROW
            body, stop = split_row(plain, start, end)
        elif plain[start] == "<" and end - start < 2000 and _TAG_LINE.fullmatch(plain, start, end):
            body = stop
        fresh = fresh or body > start
        if body >= stop or (kind is BlockKind.ROW and not plain[body:stop].strip("-:| \t")):
            continue
        if fresh:
            listed = listed or (kind is BlockKind.PROSE and body > start)
            parts.append(_Block(kind, [], listed))
        parts[-1].lines.append((body, stop))
        fresh = kind is BlockKind.ROW
    return parts if len(parts) != 1 or parts[0].lines != block.lines else [block]


def _mask_comments(plain: str) -> str:
    """``plain`` with the HTML comments that a reader of the page would not see as spaces."""
    spans: list[tuple[int, int]] = []
    at, done = plain.find("<!--"), 0
    while at >= 0 and (stop := plain.find("-->", at + 4) + 3) > 2:
        line = plain.rfind("\n", done, at) + 1 or done
        # in the middle of a line a comment ends with its paragraph, else it is not one; code shows it
        comment = plain[line:at].strip() == "" or plain.find("\n\n", at, stop) < 0
        if comment and plain.count("`", line, at) % 2 == 0:
            spans.append((at, stop))
            done = stop
        at = plain.find("<!--", stop)
    return _blanked(plain, spans)


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """``text`` with the ascending ``spans`` as spaces; line breaks stay. Overlapping spans are skipped."""
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        if end > start >= done:
            pieces += text[done:start], re.sub(r"[^\n]", " ", text[start:end])
            done = end
    return "".join(pieces) + text[done:]


def _blocks(plain: str) -> tuple[list[_Block], str]:
    """The blocks of an answer, and the text with quote marks and other prefixes of lines as spaces."""
    if len(plain) > _MAX_MARKDOWN or plain.count("\n") > _MAX_LINES:
        return [_Block(kind, lines) for kind, lines in scan_blocks(plain)], plain
    reader = _Reader(plain)
    reader.read(0, len(plain), nested=False)
    return reader.blocks, _blanked(plain, sorted(reader.prefixes))


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
        self.prefixes: list[tuple[int, int]] = []
        """What stands before the content of each line."""

    def read(self, base: int, end: int, *, nested: bool) -> None:
        """Append the blocks of ``plain[base:end]``, which begins and ends at line ends."""
        source = self.plain[base:end]
        bounds = accumulate((len(line) + 1 for line in source.split("\n")), initial=base)
        lines = [(start, stop - 1) for start, stop in pairwise(bounds)]
        covered: set[int] = set()
        items: list[tuple[str, int]] = []
        header = False
        opened: Token | None = None
        for token in _PARSER.parse(source):
            first, stop = token.map or (0, 0)
            stop = min(stop, len(lines))
            match token.type:
                case "list_item_open" | "blockquote_open":
                    items.append((token.type, first))
                case "list_item_close" | "blockquote_close":
                    items.pop()
                case "thead_open" | "thead_close":
                    header = token.type == "thead_open"
                    covered.update(range(first, stop + 1) if token.map else ())
                case "tr_open":
                    self._row(lines[first], header, items, first)
                    covered.add(first)
                case "hr":
                    covered.update(range(first, stop))
                case "fence" | "code_block":
                    self._code(token, lines[first:stop], nested=nested)
                    covered.update(range(first, stop))
                case "inline" if opened is not None and opened.map:
                    first, stop = opened.map[0], min(opened.map[1], len(lines))
                    listed = any(kind == "list_item_open" for kind, _ in items)
                    if self._inline(token, opened, lines[first:stop], listed=listed):
                        covered.update(range(first, stop))
            opened = token if token.type in ("paragraph_open", "heading_open") else None
        for taken, group in groupby(range(len(lines)), covered.__contains__):
            if not taken:  # read line by line what no token accounts for
                gap = list(group)
                self._scan(lines[gap[0]][0], lines[gap[-1]][1])

    def _scan(self, begin: int, end: int) -> None:
        self.blocks += [_Block(kind, lines) for kind, lines in scan_blocks(self.plain, begin, end)]

    def _inline(self, token: Token, opened: Token, lines: Lines, *, listed: bool) -> bool:
        """Add a paragraph or heading; false when its text cannot be laid over the lines."""
        heading = opened.type == "heading_open"
        marks = heading and opened.markup.startswith("#")
        parts = [part.strip() for part in token.content.split("\n")]
        if heading and not marks:
            lines = lines[:-1]  # the underline
        lines = [line for line in lines if self.plain[slice(*line)].strip()]
        if len(lines) != len(parts):
            return False
        found: Lines = []
        for (begin, stop), part in zip(lines, parts, strict=True):
            raw = self.plain[begin:stop].rstrip()
            if marks and not raw.endswith(part):
                raw = raw.rstrip("#").rstrip()
            if not raw.endswith(part):
                return False
            at = begin + len(raw) - len(part)
            self.prefixes.append((begin, at))
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
            self._scan(begin, end)
        else:
            self.blocks.append(_Block(BlockKind.CODE, [(start, stop)]))


def _reads_as_prose(content: str) -> bool:
    """Whether text in a fence is sentences rather than code: words, an end mark, hardly a sign of code."""
    sample = content[:4000].strip()
    if len(sample.split()) < 4 or not re.search(r"[.!?。！？](?:[\s\"')\]*]|$)", sample):
        return False
    return len(_CODE_CHARS.findall(sample)) <= 0.02 * len(sample)
