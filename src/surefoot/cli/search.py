"""``surefoot search``: passages of an index that answer a query."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from surefoot.cli.index import Pooling, embedder_of
from surefoot.cli.output import FINE, UNDER_THRESHOLD, errors, write

if TYPE_CHECKING:
    from surefoot.retrieve import Hit

__all__ = ["register"]

_SHOWN: Final = 240


class SearchMode(StrEnum):
    """Which list the passages come from."""

    FUSION = "fusion"
    DENSE = "dense"
    BM25 = "bm25"


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(search)


def search(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What surefoot index made.")],
    query: Annotated[str, typer.Argument(help="What is asked.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Most passages.")] = 15,
    mode: Annotated[
        SearchMode, typer.Option("--mode", help="By vector, by words (bm25), or both.")
    ] = SearchMode.FUSION,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="KEY=VALUE", help="Only sources with these metadata. Repeat."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="The embedder, where the index has another than the bundled."),
    ] = None,
    pooling: Annotated[
        Pooling | None, typer.Option("--pooling", help="For --model, where its folder does not say.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="Threads to compute with; default: all cores allowed."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the passages as JSON.")] = False,
) -> None:
    """Find passages in an index.

    Exit code: 0 something was found, 1 nothing was, 2 wrong command or input, 3 the search failed.
    """
    with errors():
        from surefoot.retrieve import Index

        wanted = _wanted(where or [])
        index = Index.load(folder, embedder=embedder_of(model, pooling, threads))
        hits = index.search(query, k, mode=mode.value, filter=wanted or None)
        if as_json:
            table = {"query": query, "mode": mode.value, "hits": [hit.to_dict() for hit in hits]}
            write(json.dumps(table, indent=2, allow_nan=False) + "\n")
        else:
            write("".join(map(_text, hits)) or "nothing was found\n")
    raise typer.Exit(FINE if hits else UNDER_THRESHOLD)


def _wanted(pairs: list[str]) -> dict[str, list[str | int | float | bool]]:
    """``KEY=VALUE`` as a filter; a value that reads as a JSON number or truth value matches that as well."""
    wanted: dict[str, list[str | int | float | bool]] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"--where takes KEY=VALUE, not {pair!r}")
        choices = wanted.setdefault(key, [])
        choices.append(value)
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            continue
        if isinstance(parsed, (bool, int, float)):
            choices.append(parsed)
    return wanted


def _text(hit: Hit) -> str:
    from surefoot.report.wording import printable

    places = [
        f"{name} {place.rank}. ({place.score:.3f})"
        for name, place in (("by vector", hit.dense), ("by words", hit.bm25))
        if place is not None
    ]
    head = f"{hit.rank}. {hit.source_id} [{hit.start}-{hit.end}] {', '.join(places)}"
    text = hit.text if len(hit.text) <= _SHOWN else f"{hit.text[:_SHOWN]}..."
    return f"{printable(head)}\n   {printable(' '.join(text.split()))}\n"
