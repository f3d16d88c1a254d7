"""The text of an answer without its citation markers, for a model to read."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from surefoot.citations.markers import Marker

__all__ = ["strip_markers"]

_SPACES = " \t\u00a0\u202f\u2009\u3000"
_CLOSING = frozenset(".,;:!?)]}…。，、；：！？）］】»”")
_PAIRS = {"(": ")", "[": "]", "（": "）", "［": "］"}
_BETWEEN = re.compile(rf"[{_SPACES},;&/–-]{{0,12}}(?:(?:and|or)[{_SPACES}]{{0,12}})?")
_EMPTIED = re.compile(
    rf"[(\[（［](?:[{_SPACES}]{{0,4}}(?:see|cf|sources?|refs?|from|per|in)\b[.:]?)?[{_SPACES}]{{0,4}}$"
)


def strip_markers(text: str, start: int, end: int, markers: Sequence[Marker]) -> str:
    """``text[start:end]`` without markers and without the spaces and brackets that they leave behind.

    Positions in the result do not correspond to ``text``. ``markers`` are all those of ``text``, as
    :func:`~surefoot.citations.find_markers` returns them; one that crosses an edge is cut there.
    """
    cuts: list[tuple[int, int]] = []
    for marker in markers[bisect_right(markers, start, key=lambda marker: marker.end) :]:
        if marker.start >= end:
            break
        left, right = max(start, marker.start), min(end, marker.end)
        if cuts and _BETWEEN.fullmatch(text, cuts[-1][1], left):
            left = cuts.pop()[0]  # "[1], [2]" is removed as a whole
        cuts.append((left, right))
    cuts.append((end, end))
    pieces: list[str] = []
    piece = text[start : cuts[0][0]]
    for (_, at), (stop, _) in pairwise(cuts):
        piece, following = _join(piece, text[at:stop])
        if following:
            pieces.append(piece)
            piece = following
    return "".join([*pieces, piece])


def _join(left: str, right: str) -> tuple[str, str]:
    """Both sides of a cut, without what the marker leaves behind."""
    while opened := _EMPTIED.search(left[-40:]):
        rest = right.lstrip(_SPACES)
        if rest[:1] != _PAIRS[opened[0][0]]:
            break
        left, right = left[: len(left) - len(opened[0])], rest[1:]
    rest = right.lstrip(_SPACES)
    if not left:
        return left, rest.lstrip(":;,").lstrip(_SPACES)
    spaced = len(rest) < len(right)
    closes = rest[:1] in _CLOSING and not (spaced and rest[0] in ".:," and rest[1:2].isalnum())
    if not rest or closes or rest[0] in "\r\n":
        left = left.rstrip(_SPACES)
        doubled = left.endswith(".") and rest[:1] == "." and rest[1:2] != "."
        return left, rest[1:] if doubled else rest
    if left[-1].isspace() or left[-1] in _PAIRS:
        return left, rest
    if not spaced and (left[-1].isalnum() or left[-1] in ".!?,;:") and rest[0].isalnum():
        # Scripts written without spaces begin there.
        return left, rest if max(left[-1], rest[0]) >= "\u2e80" else " " + rest
    return left, right
