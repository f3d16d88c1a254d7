"""Opposites of words, from WordNet (Miller 1995)."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

__all__ = ["opposites"]


@lru_cache(maxsize=1)
def opposites(folder: Path = Path("/usr/share/wordnet")) -> dict[tuple[str, str], list[str]]:
    """(part of speech, word) and its opposites, from the ``!`` pointers of WordNet (Miller 1995).

    Args:
        folder: of WordNet's database files; Debian's package ``wordnet-base`` puts them there.
    """
    found: dict[tuple[str, str], set[str]] = {}
    synsets: dict[tuple[str, str], list[str]] = {}
    links: list[tuple[str, str, str, str, str]] = []
    for name, part in (("verb", "v"), ("adj", "a"), ("adv", "r"), ("noun", "n")):
        for line in (folder / f"data.{name}").read_text("utf-8").splitlines():
            if line.startswith(" "):
                continue
            fields = line.split(" | ")[0].split()
            count = int(fields[3], 16)
            words = [re.sub(r"\(.*\)$", "", fields[4 + 2 * k]) for k in range(count)]
            synsets[part, fields[0]] = words
            at = 4 + 2 * count
            for k in range(int(fields[at])):
                symbol, offset, kind, ends = fields[at + 1 + 4 * k : at + 5 + 4 * k]
                if symbol == "!":
                    links.append((part, fields[0], kind, offset, ends))
    for part, offset, kind, other, ends in links:
        one = synsets[part, offset][int(ends[:2], 16) - 1]
        two = synsets["a" if kind == "s" else kind, other][int(ends[2:], 16) - 1]
        if one.isalpha() and two.isalpha() and one.islower() and two.islower() and len(one) > 2 < len(two):
            found.setdefault((part, one), set()).add(two)
    return {word: sorted(others) for word, others in found.items()}
