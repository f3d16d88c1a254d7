"""What a citation marker names: the keys inside it, and the source that each key stands for.

The body of a marker has at most 240 characters, so nothing here can take long.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from surefoot.schema import Source

__all__ = ["MAX_BODY", "Names", "Reader", "is_numeric", "known_keys"]

MAX_BODY = 240
_MAX_KEYS = 50

_EXTENSION = re.compile(r"(?<=[^.\s])\.[A-Za-z][A-Za-z0-9]{0,4}$")
_INTEGER = re.compile(r"\d{1,9}")


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold()


class Names:
    """Looks up keys among sources, in the order that :func:`~surefoot.citations.resolve` states."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.exact = frozenset(source.id for source in sources)
        self.folded: dict[str, str] = {}
        titles = [(source.title or "", source.id) for source in sources]
        bases = [(PurePosixPath(source.id.replace("\\", "/")).name, source.id) for source in sources]
        tiers = ([(s.id, s.id) for s in sources], titles, _stems(titles), bases, _stems(bases))
        for tier in tiers:
            for name, source_id in tier:
                if folded := _fold(name):
                    self.folded.setdefault(folded, source_id)

    def find(self, key: str) -> str | None:
        """The id that ``key`` names; a page or a caption after the name is ignored."""
        if (found := self._find(key)) is not None:
            return found
        bare = _LOCATOR_TAIL.sub("", key) if len(key) <= MAX_BODY else key
        head, colon, _ = key.partition(":")
        for shorter in (bare, head if colon and _INTEGER.fullmatch(head.strip()) else ""):
            if shorter and shorter != key and (found := self._find(shorter)) is not None:
                return found
        return None

    def _find(self, key: str) -> str | None:
        for name in (key, key.strip()):
            if name in self.exact:
                return name
        if (found := self.folded.get(_fold(key))) is not None:
            return found
        if _INTEGER.fullmatch(key.strip()) and 1 <= int(key) <= len(self.sources):
            return self.sources[int(key) - 1].id
        return None


def _stems(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(_EXTENSION.sub("", name), source_id) for name, source_id in pairs]


def known_keys(sources: Sequence[Source]) -> frozenset[str]:
    """Every key that names one of ``sources``, case-folded, for ``find_markers(..., known=...)``.

    These are ids, titles and file names, with and without extension, and the numbers up to ``len(sources)``.
    """
    return frozenset(Names(sources).folded) | {str(number) for number in range(1, len(sources) + 1)}


_LABEL = re.compile(
    r"(?P<label>doc(?:ument)?s?|chunks?|sources?|passages?|ref(?:erence)?s?|cite|citations?|contexts?"
    r"|excerpts?|snippets?|web ?pages?|search results?)(?:[ _-]?ids?)?"
    r"(?P<sep>\s{0,9}[:=]\s{0,9}|\.?[\s]{1,9}|\.(?=\d)|[_-]|\s{0,9}(?=#)|(?=\d))"
    r"(?:(?:no|nr|number|ids?)\b[.:]?\s{0,9})?(?P<rest>[^\n]{1,240})",
    re.IGNORECASE,
)
# After a colon anything is a key; after a space only behind the labels that nobody uses in prose.
_NAMES_ANYTHING = re.compile(r"doc(?:ument)?s?|chunks?|sources?|ref(?:erence)?s?|cite|citations?", re.I)
_NAMES_WORDS = re.compile(r"docs?|chunks?", re.I)
_LOCATOR_WORD = (
    r"(?:pp?|pages?|pgs?|sections?|secs?|paras?|paragraphs?|chapters?|ch|lines?|slides?|arts?|articles?)"
)
_LOCATOR = re.compile(rf"(?:{_LOCATOR_WORD}\b\.?|§{{1,2}})\s{{0,9}}[\divxlc.–-]{{1,20}}", re.I)
_LOCATOR_TAIL = re.compile(
    rf"[\s,]{{1,9}}{_LOCATOR.pattern}\s{{0,9}}$|\s{{1,9}}\({_LOCATOR.pattern}\)$", re.I
)
_PAGES = re.compile(r"(?:pp|pages|lines|sections|§§)\b", re.I)
_RANGE = re.compile(r"(\d{1,9})\s{0,9}(?:[-–—−]|\bto\b)\s{0,9}(\d{1,9})")
_NUMERIC = re.compile(rf"(?!00)\d{{1,9}}|{_RANGE.pattern}")
_AND = re.compile(r"\s{0,9}(?:&|\band\b)\s{0,9}", re.I)
_ID_LIKE = re.compile(r"(?=[^\s]*(?:\d|_|/|-|\w\.\w))[^\s]{1,240}")
_LINKED = re.compile(r"\[([^\[\]]{0,240})\](?:\([^()\s]{0,240}\))?")
_DAGGER = re.compile(r"(\d{1,9})(:\d{1,9})?\s{0,9}†\s{0,9}([^\n]{0,240})")
_QUOTES = " \t\"'`*“”‘’«»"


class Reader:
    """Turns the inside of a marker into keys, or ``None`` if it is not a citation."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = {_fold(name) for name in known}

    def known(self, name: str) -> bool:
        """Whether ``name`` is a key of a source."""
        return _fold(name) in self._known

    def square(self, body: str, *, linked: bool = False) -> tuple[str, ...] | None:
        """Keys of ``[body]``. The text of a link must be a number or have a label."""
        body = body.strip()
        if not linked and self.known(body):
            return (body,)
        if body.startswith("^"):
            return self._bare(body[1:].strip())
        if (match := _LABEL.fullmatch(body)) and (keys := self._labelled(match, words=True)):
            return keys
        return self._bare(body, numbers_only=linked)

    def paren(self, body: str) -> tuple[str, ...] | None:
        """Keys of ``(body)``, only with a label, since parentheses may hold anything."""
        body = _LINKED.sub(r"\1", body).strip()
        match = _LABEL.fullmatch(re.sub(r"^see:?\s{1,9}", "", body, flags=re.I))
        return self._labelled(match, words=False) if match else None

    def lenticular(self, body: str) -> tuple[str, ...] | None:
        """Keys of ``【body】``, with or without the dagger that chat services write."""
        match = _DAGGER.fullmatch(body.strip())
        if match is None:
            return self.square(body)
        number, part, name = match[1], match[2], match[3].strip()
        # "4:0" counts messages and annotations of a chat service; only the name can be a source.
        return (name,) if self.known(name) else (number + (part or ""),)

    def free(self, body: str) -> tuple[str, ...]:
        """Keys of a caller's own form, split at separators."""
        if len(body) > MAX_BODY or self.known(body):
            return (body,)
        return _expand(self._items(body), body) or (body,)

    def _labelled(self, match: re.Match[str], *, words: bool) -> tuple[str, ...] | None:
        label, sep, rest = match["label"], match["sep"], match["rest"].strip()
        if not re.search(r"\w", rest):
            return None
        if self.known(rest):
            return (rest,)
        items = self._items(rest)
        named = all(self._names(item) for item in items)
        anything = bool(re.search("[:=]", sep)) and bool(_NAMES_ANYTHING.fullmatch(label))
        words = words and sep.isspace() and bool(_NAMES_WORDS.fullmatch(label))
        if not (anything or words or (named and items)):
            return None
        listed = named or any(self.known(item) for item in items) or bool(_NAMES_WORDS.fullmatch(label))
        # "Source: Acme, Inc." is one unknown name, not two.
        return _expand(items, rest) if listed or label[-1] in "sS" else (rest,)

    def _bare(self, body: str, *, numbers_only: bool = False) -> tuple[str, ...] | None:
        items = self._items(body)
        numeric = [item for item in items if _NUMERIC.fullmatch(item) and not self.known(item)]
        if not items or not all(_NUMERIC.fullmatch(i) or (self.known(i) and not numbers_only) for i in items):
            return None
        bounds = [int(n) for item in numeric for n in re.findall(r"\d+", item)]
        if len(numeric) == len(items):
            if all(1000 <= bound <= 2999 for bound in bounds) or 1000 <= bounds[0] <= 2999:
                return None  # a year, or a date
            if bounds[0] == 0 and len(bounds) == 2:
                return None  # an interval such as [0, 1]
        elif bounds[:1] == [0] and len(items) == 2:
            return None
        return _expand(items, body)

    def _names(self, item: str) -> bool:
        return bool(_NUMERIC.fullmatch(item) or _ID_LIKE.fullmatch(item)) or self.known(item)

    def _items(self, body: str) -> list[str]:
        items: list[str] = []
        pages = False
        for chunk in re.split("[;|]", body):
            parts = chunk.split(",")
            at = 0
            while at < len(parts):
                joined, size = parts[at], 1
                for stop in range(min(len(parts), at + 6), at + 1, -1):  # a known name may hold commas
                    if self.known(name := ",".join(parts[at:stop]).strip(_QUOTES)):
                        joined, size = name, stop - at
                        break
                at += size
                for item in self._split(joined):
                    if items and (_LOCATOR.fullmatch(item) or (pages and _NUMERIC.fullmatch(item))):
                        pages = pages or bool(_PAGES.match(item))
                    elif item:
                        items.append(item)
        return items

    def _split(self, part: str) -> list[str]:
        part = self._clean(part)
        if self.known(part):
            return [part]
        pieces = [self._clean(piece) for piece in _AND.split(part)]
        if len(pieces) > 1 and all(self._names(piece) for piece in pieces if piece):
            return pieces
        bare = _LOCATOR_TAIL.sub("", part)
        return [bare if self.known(bare) else part]

    def _clean(self, item: str) -> str:
        item = item.strip(_QUOTES)
        if self.known(item):
            return item
        if (match := _LABEL.fullmatch(item)) and self._names(rest := match["rest"].strip(_QUOTES + "#")):
            return rest
        return item[1:] if re.fullmatch(r"#\d{1,9}", item) else item


def is_numeric(body: str) -> bool:
    """Whether ``body`` begins like a list of numbers."""
    return _NUMERIC.match(body) is not None


def _expand(items: Sequence[str], body: str) -> tuple[str, ...]:
    keys: list[str] = []
    for item in items:
        match = _RANGE.fullmatch(item)
        if match is None:
            keys.append(item)
            continue
        first, last = int(match[1]), int(match[2])
        wide = not 0 <= last - first < _MAX_KEYS
        keys += [item] if wide else [str(number) for number in range(first, last + 1)]
    return tuple(keys) if len(keys) <= _MAX_KEYS else (body,)
