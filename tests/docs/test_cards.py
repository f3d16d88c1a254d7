"""The examples of what a model gets wrong, in its card, are what the bundled model says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surefoot import Reranker, Verifier

CARDS = Path(__file__).resolve().parents[2] / "docs" / "models"
HEADING = "## What it gets wrong"


def supports(source: str, claims: list[str]) -> list[float]:
    found = [claim.support for claim in Verifier().check_claims(claims, [source])]
    assert None not in found
    return [float(support or 0) for support in found]


def relevances(query: str, passages: list[str]) -> list[float]:
    ranking = Reranker().rerank(query, passages)
    found = {ranked.index: ranked.relevance for ranked in ranking}
    assert None not in found.values()
    return [float(found[place] or 0) for place in range(len(passages))]


SCORES: dict[str, Callable[[str, list[str]], list[float]]] = {
    "verify.md": supports,
    "rerank.md": relevances,
}
"""Card to what scores its examples, from the first column (empty: as in the row above) and the second."""


def example_rows(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of the first table under :data:`HEADING`, without its head."""
    start = lines.index(HEADING)
    first = next(i for i in range(start, len(lines)) if lines[i].startswith("|"))
    for number in range(first + 2, len(lines)):
        if not lines[number].startswith("|"):
            return
        yield number, [cell.strip() for cell in lines[number].strip("|").split("|")]


def renewed_card(path: Path) -> str:
    """The text of a card with the scores that its model gives now."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    groups: dict[str, list[tuple[int, list[str]]]] = {}
    key = ""
    for number, cells in example_rows(lines):
        key = cells[0] or key
        groups.setdefault(key, []).append((number, cells))
    for key, rows in groups.items():
        scores = SCORES[path.name](key, [cells[1].strip("*") for _, cells in rows])
        for (number, cells), score in zip(rows, scores, strict=True):
            cells[-1] = f"{score:.2f}".removeprefix("0")
            if cells[2] in ("true", "false"):
                wrong = (score >= 0.5) != (cells[2] == "true")
                cells[1] = f"**{cells[1].strip('*')}**" if wrong else cells[1].strip("*")
            lines[number] = "| " + " | ".join(cells).strip() + " |"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", SCORES)
def test_examples_of_a_card_are_what_its_model_says(name: str) -> None:
    path = CARDS / name
    shown = dict(example_rows(path.read_text("utf-8").splitlines()))
    assert len(shown) >= 8
    for number, cells in example_rows(renewed_card(path).splitlines()):
        assert cells[:-1] == shown[number][:-1], "what is on the wrong side is bold"
        # Processors round differently: the last digit may be another.
        assert float(cells[-1]) == pytest.approx(float(shown[number][-1]), abs=0.015), cells
