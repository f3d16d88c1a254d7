"""Sources as one text for the judge, whole where they fit, else the part that matters, else window by window.

Nothing is cut silently: whoever shows a part says so (``partial_context``), and windows leave nothing out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from surefoot.schema import Source

__all__ = ["Shown", "estimate_tokens", "select", "whole", "windows"]

_AROUND: Final = 350
"""Characters shown on both sides of a selected sentence."""

_RANKED: Final = 24
_GAP: Final = "[...]"


@dataclass(frozen=True, slots=True)
class Shown:
    """Text of the sources as the judge sees it.

    Attributes:
        text: the sources, each under a line with its number and title if there are several.
        partial: something was left out.
    """

    text: str
    partial: bool


def estimate_tokens(text: str) -> int:
    """Tokens of ``text`` for a usual model, rather too many than too few: a third of its UTF-8 bytes."""
    return len(text.encode("utf-8", "replace")) // 3 + text.count("\n") + 1


def whole(sources: Sequence[Source]) -> Shown:
    """All sources that are not blank."""
    parts = [(index, source) for index, source in enumerate(sources) if source.text.strip()]
    alone = len(parts) == 1
    return Shown(
        "\n\n".join(_head(index, source, alone=alone) + source.text for index, source in parts), False
    )


def select(sources: Sequence[Source], claims: Sequence[str], room: int) -> Shown:
    """What speaks about the claims, best first, until ``room`` is full; each claim in turn.

    Args:
        sources: in the caller's order, which the text keeps.
        claims: what has to be judged.
        room: tokens, as :func:`estimate_tokens` counts them; at least a few hundred.
    """
    from surefoot.evidence.index import EvidenceIndex
    from surefoot.evidence.lexicon import load_lexicon

    index = EvidenceIndex(sources, load_lexicon())
    ranked = [index.rank(claim, limit=_RANKED) for claim in claims]
    chosen: dict[int, list[tuple[int, int]]] = {}
    used = 0
    for place in range(_RANKED):
        for sentences in ranked:
            if place >= len(sentences):
                continue
            sentence = sentences[place].sentence
            if _holds(chosen.get(sentence.source, ()), sentence.start, sentence.end):
                continue
            source = sources[sentence.source]
            start, end = _passage(source.text, sentence.start, sentence.end)
            cost = estimate_tokens(source.text[start:end]) + 4
            if sentence.source not in chosen:
                cost += estimate_tokens(_head(sentence.source, source, alone=False))
            if used + cost > room:
                continue
            used += cost
            chosen.setdefault(sentence.source, []).append((start, end))
    parts = []
    for source_index in sorted(chosen):
        source = sources[source_index]
        pieces = [source.text[start:end].strip() for start, end in _merged(chosen[source_index])]
        parts.append(_head(source_index, source, alone=False) + f"\n{_GAP}\n".join(pieces))
    return Shown("\n\n".join(parts), True)


def windows(sources: Sequence[Source], room: int) -> list[Shown]:
    """All of the sources, in windows of at most ``room`` tokens; long sources overlap by about a quarter."""
    found: list[Shown] = []
    pending: list[str] = []
    used = 0
    for index, source in enumerate(sources):
        if not source.text.strip():
            continue
        head = _head(index, source, alone=False)
        for piece in _pieces(source.text, room - estimate_tokens(head) - 4):
            cost = estimate_tokens(head + piece) + 1
            if pending and used + cost > room:
                found.append(Shown("\n\n".join(pending), True))
                pending, used = [], 0
            pending.append(head + piece)
            used += cost
    if pending:
        found.append(Shown("\n\n".join(pending), True))
    return found


def _head(index: int, source: Source, *, alone: bool) -> str:
    title = f" {source.title[:200]}" if source.title else ""
    return "" if alone and not title else f"[{index + 1}]{title}\n"


def _holds(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    return any(low <= start and end <= high for low, high in spans)


def _passage(text: str, start: int, end: int) -> tuple[int, int]:
    """A span with what stands around it, in the same paragraph, cut between words."""
    low, high = max(0, start - _AROUND), min(len(text), end + _AROUND)
    paragraph = text.rfind("\n\n", low, start)
    if paragraph >= 0:
        low = paragraph + 2
    elif low:
        space = text.find(" ", low, start)
        low = start if space < 0 else space + 1
    paragraph = text.find("\n\n", end, high)
    if paragraph >= 0:
        high = paragraph
    elif high < len(text):
        space = text.rfind(" ", end, high)
        high = end if space < 0 else space
    return low, high


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _pieces(text: str, room: int) -> list[str]:
    """Overlapping pieces of at most ``room`` tokens, cut at a line end, a full stop or a space."""
    room = max(room, 32)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        # Three bytes a token, one to four bytes a character: shrink until it fits.
        end = min(len(text), start + room * 3)
        while estimate_tokens(text[start:end]) > room and end - start > 1:
            end = start + max(1, (end - start) * 3 // 4)
        if end < len(text):
            for separator in ("\n", ". ", " "):
                cut = text.rfind(separator, start + (end - start) // 2, end)
                if cut >= 0:
                    end = cut + len(separator)
                    break
        if text[start:end].strip():
            pieces.append(text[start:end])
        if end >= len(text):
            break
        back = text.find(" ", max(start + 1, end - (end - start) // 4), end)
        start = end if back < 0 else back + 1
    return pieces
