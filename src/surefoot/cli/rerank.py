"""``surefoot rerank``: passages in the order of their relevance to a query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.cli.output import FAILED, FINE, UNDER_THRESHOLD, errors, progress, say, write
from surefoot.errors import InputError

if TYPE_CHECKING:
    from surefoot.rerank import Explanation, RankedSource, Ranking

__all__ = ["register"]

_SHOWN = 300
"""Code points of a passage that are printed; JSON has all of it."""


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(rerank)


def rerank(
    file: Annotated[
        str | None,
        typer.Argument(
            help="JSON: a request with query and passages, or an array of passages; .jsonl: one a line; "
            "- for standard input."
        ),
    ] = None,
    query: Annotated[str | None, typer.Option("--query", help="The query, where no request has it.")] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="FILE", help="A passage: text, Markdown, HTML, PDF or JSON. Repeat."
        ),
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="FILE is text: each line is a passage.")] = False,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="How many passages to print.")] = 5,
    everything: Annotated[bool, typer.Option("--all", help="Print all passages.")] = False,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", min=0.0, max=1.0, help="Leave out passages of a lower relevance."),
    ] = None,
    deadline_ms: Annotated[
        float | None, typer.Option("--deadline-ms", help="Stop scoring after so many milliseconds.")
    ] = None,
    text_field: Annotated[
        list[str] | None,
        typer.Option("--text-field", metavar="NAME", help="Field of a passage that holds its text. Repeat."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each sentence does to the score.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="A bundled model, a folder, or a hub model that was pulled.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option("--max-length", min=16, help="Tokens of query and passage; then windows.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="Threads to compute with; default: all cores allowed."),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Multiply in int8 where the processor is made for it.")
    ] = False,
    max_mb: Annotated[
        float, typer.Option("--max-mb", min=0.001, help="Refuse an input file of more megabytes.")
    ] = 64.0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only errors and what was asked for.")
    ] = False,
) -> None:
    """Order passages by their relevance to a query.

    Exit code: 0 fine, 1 no passage reaches the threshold, 2 wrong command or input, 3 not, or only partly,
    reranked: the passages are printed in the order in which they came.
    """
    with errors():
        from surefoot.rerank import Reranker
        from surefoot.rerank.passages import TEXT_FIELDS

        warnings: list[str] = []
        wanted, passages = _input(file, query, source or [], lines, max_mb, warnings)
        if not quiet:
            for warning in warnings:
                say(f"warning: {warning}")
        reranker = Reranker(
            model, max_length=max_length, threads=threads, arithmetic="int8" if int8 else "float32"
        )
        fields = tuple(text_field) if text_field else TEXT_FIELDS
        with progress("ranking", quiet=quiet) as step:
            ranking = reranker.rerank(
                wanted,
                passages,
                top_k=None if everything else top_k,
                text_fields=fields,
                threshold=threshold,
                deadline_ms=deadline_ms,
                progress=step,
            )
        scored = [found for found in ranking if found.reranker_score is not None]
        explanations = [reranker.explain(wanted, found.text) for found in scored] if explain else []
        if as_json:
            table = ranking.to_dict()
            if explain:
                table["explanations"] = [explanation.to_dict() for explanation in explanations]
            write(json.dumps(table, indent=2, allow_nan=False) + "\n")
        elif not quiet:
            write(_text(ranking, explanations))
        if ranking.degraded:
            say(f"warning: {'partly ' if ranking.scored else 'not '}reranked: {ranking.detail}")
    raise typer.Exit(_exit_code(ranking, threshold))


def _exit_code(ranking: Ranking, threshold: float | None) -> int:
    if ranking.degraded:
        return FAILED  # before the threshold: what was not scored reaches none
    if threshold is not None and not ranking:
        return UNDER_THRESHOLD
    return FINE


def _input(
    file: str | None, query: str | None, sources: list[str], lines: bool, max_mb: float, warnings: list[str]
) -> tuple[str, Any]:
    """(query, passages) from whatever names them."""
    from surefoot.cli.request import read_sources, read_text

    if (file is None) == (not sources):
        raise typer.BadParameter("give either a file of passages, or --query TEXT with --source FILE")
    if lines and file is None:
        raise typer.BadParameter("--lines goes with a file of passages")
    found: tuple[str | None, Any]
    if file is None:
        found = None, list(read_sources(sources, warnings, max_mb=max_mb))
    else:
        name = "standard input" if file == "-" else file
        text = read_text(file, warnings, max_mb=max_mb).removeprefix("\ufeff")
        found = (None, _nonempty(text)) if lines else _parsed(text, name)
    in_file, passages = found
    wanted = in_file if query is None else query
    if wanted is None:
        raise typer.BadParameter("there is no query: give --query TEXT")
    return wanted, passages


def _nonempty(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _parsed(text: str, name: str) -> tuple[str | None, Any]:
    from surefoot.cli.request import parse_json

    if name.lower().endswith((".jsonl", ".ndjson")):
        numbered = enumerate(text.split("\n"), 1)
        return None, [parse_json(line, f"{name}: line {number}") for number, line in numbered if line.strip()]
    value = parse_json(text, name)
    if isinstance(value, list):
        return None, value
    if not isinstance(value, dict):
        raise InputError(f"{name}: expected an array of passages, or an object with query and passages")
    passages = value.get("passages", value.get("sources"))
    query = value.get("query", value.get("question"))
    if not isinstance(passages, list):
        raise InputError(f'{name}: the field "passages" is missing, or no array')
    if query is not None and not isinstance(query, str):
        raise InputError(f"{name}: query: expected a string")
    return query, passages


def _text(ranking: Ranking, explanations: list[Explanation]) -> str:
    by_text = {explanation.text: explanation for explanation in explanations}
    blocks = []
    for found in ranking:
        explanation = by_text.get(found.text) if found.reranker_score is not None else None
        blocks.append("\n".join([_headline(found), f"   {_shown(found)}", *_effects(explanation)]))
    if not blocks:
        return "no passage\n" if not ranking.passages else "no passage reaches the threshold\n"
    return "\n".join(blocks) + "\n"


def _headline(found: RankedSource) -> str:
    from collections.abc import Mapping

    from surefoot.report.wording import printable
    from surefoot.schema import Source

    parts = [f"{found.rank}."]
    if found.reranker_score is None or found.relevance is None:
        parts.append("not scored" if found.text.strip() else "empty")
    else:
        parts.append(f"relevance {found.relevance:.3f}, logit {found.reranker_score:.3f}")
    parts.append(f"was {found.first_stage_rank}.")
    item = found.item
    identifier = (
        item.id if isinstance(item, Source) else item.get("id") if isinstance(item, Mapping) else None
    )
    if identifier is not None:
        parts.append(printable(str(identifier)[:100]))
    if found.windows > 1 and found.window is not None:
        parts.append(f"best of {found.windows} windows: {found.window.start} to {found.window.end}")
    return "  ".join(parts)


def _shown(found: RankedSource) -> str:
    text = found.text if found.window is None else found.window.of(found.text)
    return _clipped(text)


def _clipped(text: str) -> str:
    from surefoot.report.wording import printable

    line = " ".join(printable(text[: 2 * _SHOWN]).split())
    cut = len(text) > 2 * _SHOWN or len(line) > _SHOWN
    return line[:_SHOWN].rstrip() + "..." if cut else line


def _effects(explanation: Explanation | None) -> list[str]:
    if explanation is None:
        return []

    def figure(value: float | None) -> str:
        return "      -" if value is None else f"{value:+7.3f}"

    return [
        f"   {figure(sentence.contribution)}  alone {figure(sentence.alone)}  {_clipped(sentence.text)}"
        for sentence in explanation.sentences
    ]
