"""``surefoot ask``: a question, answered from documents, with the check of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli.index import Pooling, embedder_of
from surefoot.cli.output import FAILED, FINE, errors, fail, progress, say, show, write
from surefoot.errors import InputError

if TYPE_CHECKING:
    from surefoot.inference.embedding import Embedder
    from surefoot.judge import Judge
    from surefoot.pipeline import Pipeline, PipelineResult, StageEvent
    from surefoot.retrieve import Index

__all__ = ["register"]

_SHOWN = 200
"""Code points of a passage that are printed; JSON has all of it."""


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(ask)


def ask(
    question: Annotated[str, typer.Argument(help="What is asked.")],
    index: Annotated[
        Path | None, typer.Option("--index", metavar="DIR", help="A folder that `surefoot index` wrote.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="FILE", help="A document: text, Markdown, HTML, PDF or JSON. Repeat."
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="MODEL", help="Where the index has another than the bundled one."),
    ] = None,
    pooling: Annotated[
        Pooling | None, typer.Option("--pooling", help="For --embedder, where its folder does not say.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Passages to retrieve.")] = 15,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="Passages to write the answer from.")] = 5,
    min_evidence: Annotated[
        float | None,
        typer.Option(
            "--min-evidence", min=0.0, max=1.0, help="Evidence below which nothing is answered; 0 never."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="A chat model that writes the answer; default: quotes.")
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="Its OpenAI-compatible server, up to and with /v1."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="MODEL", help="A chat model that judges the answer.")
    ] = None,
    judge_url: Annotated[
        str | None,
        typer.Option("--judge-url", metavar="URL", help="Its server; default: that of --base-url."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, help="Seconds for one attempt to reach a chat model.")
    ] = 60.0,
    stream: Annotated[
        bool, typer.Option("--stream", help="Say what each stage did, and how long it took, as it ends.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; with --stream, an event a line.")
    ] = False,
    max_mb: Annotated[
        float, typer.Option("--max-mb", min=0.001, help="Refuse an input file of more megabytes.")
    ] = 64.0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only errors and what was asked for.")
    ] = False,
) -> None:
    """Answer a question from documents, and check the answer.

    Without --model the answer quotes the documents, and nothing leaves this machine. An API key is read from
    OPENAI_API_KEY.

    Exit code: 0 fine, also where the documents do not answer the question; 2 wrong command or input; 3 a
    stage failed: what is known is printed.
    """
    with errors():
        if (index is None) == (not source):
            raise typer.BadParameter("give either --index DIR, or --source FILE")
        if model is None and base_url is not None:
            raise typer.BadParameter("--base-url goes with --model")
        if judge is None and judge_url is not None:
            raise typer.BadParameter("--judge-url goes with --judge")
        if not question.strip():
            raise typer.BadParameter("the question is empty")
        if top_k > k:
            raise typer.BadParameter(f"--top-k must be at most -k: {top_k} of {k} passages")
        vectors = embedder_of(embedder, pooling, None)
        if index is not None:
            passages = _loaded(index, vectors)
        else:
            passages = _built(source or [], vectors, max_mb, quiet=quiet)
        from surefoot.pipeline import MIN_EVIDENCE, Pipeline

        pipeline = Pipeline(
            passages,
            generator=model,
            base_url=base_url,
            judge=_judge(judge, judge_url or base_url, timeout),
            k=k,
            top_k=top_k,
            min_evidence=MIN_EVIDENCE if min_evidence is None else min_evidence,
            timeout=timeout,
        )
        result = _asked(pipeline, question, stream=stream, as_json=as_json)
        if as_json and not stream:
            write(result.to_json(indent=2) + "\n")
        elif not as_json and not quiet:
            _print(result)
        for note in result.notes:
            if note.degrades:
                say(f"warning: {note.stage}: {note.detail or note.code}")
    raise typer.Exit(FAILED if result.degraded else FINE)


def _loaded(folder: Path, embedder: Embedder) -> Index:
    from surefoot.retrieve import Index

    if not folder.is_dir():
        raise InputError(
            f"{folder}: there is no index: make one with `surefoot index PATH... --out {folder}`"
        )
    return _filled(Index.load(folder, embedder=embedder), f"the index {folder}")


def _built(files: list[str], embedder: Embedder, max_mb: float, *, quiet: bool) -> Index:
    """An index in memory, for this one question."""
    from surefoot.cli.request import read_sources

    warnings: list[str] = []
    sources = read_sources(files, warnings, max_mb=max_mb)
    if not quiet:
        for warning in warnings:
            say(f"warning: {warning}")
    from surefoot.retrieve import Index

    with progress("reading", quiet=quiet) as step:
        built = Index.build(sources, embedder=embedder, progress=step)
    return _filled(built, "what was given as --source")


def _filled(index: Index, name: str) -> Index:
    if not len(index):
        raise InputError(f"{name} is empty: it holds no passage to answer from")
    return index


def _judge(model: str | None, base_url: str | None, timeout: float) -> Judge | None:
    if model is None:
        return None
    from surefoot.judge import Judge

    return Judge(model, base_url=base_url, timeout=timeout)


def _asked(pipeline: Pipeline, question: str, *, stream: bool, as_json: bool) -> PipelineResult:
    from surefoot.pipeline import PipelineResult, StageError

    result = PipelineResult(question)
    try:
        for event in pipeline.stream(question):
            result = event.result
            if stream and as_json:
                write(_event_json(event) + "\n")
            elif stream:
                say(f"{event.stage}: {event.seconds:.3f} s{_did(event)}")
    except StageError as error:
        fail(str(error), FAILED)
    return result


def _event_json(event: StageEvent) -> str:
    """One line; only the last event has the result, which has everything."""
    from surefoot.pipeline import Stage

    table: dict[str, object] = {
        "stage": str(event.stage),
        "seconds": event.seconds,
        "notes": [
            {"stage": str(note.stage), "code": str(note.code), "detail": note.detail} for note in event.notes
        ],
    }
    if event.stage is Stage.DONE:
        table["result"] = event.result.to_dict()
    return json.dumps(table, allow_nan=False)


def _did(event: StageEvent) -> str:
    from surefoot.pipeline import Stage

    result = event.result
    if event.stage is Stage.RETRIEVE:
        return f", {_count(len(result.retrieved), 'passage')}"
    if event.stage is Stage.RERANK:
        return f", kept {len(result.ranked)}"
    if event.stage is Stage.GENERATE and result.draft is not None:
        return f", by {result.draft.model}" if result.answer is not None else ", no answer"
    if event.stage is Stage.VERIFY and result.report is not None:
        return f", {_count(len(result.report.claims), 'sentence')}"
    return ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _print(result: PipelineResult) -> None:
    from surefoot.report.wording import printable

    lines: list[str] = []
    if result.answer is None:
        lines.append("There is no answer.")
    else:
        lines.append(printable(result.answer, lines=True))
    weak = [note.detail for note in result.notes if not note.degrades]
    lines.extend(f"({printable(detail)})" for detail in weak)
    cited = _cited(result)
    if len(result.ranked):
        lines.append("")
        lines.append("documents:")
    for found in result.ranked:
        mark = "*" if found.rank - 1 in cited else " "
        relevance = "" if found.relevance is None else f"  relevance {found.relevance:.3f}"
        lines.append(f"{mark} [Doc {found.rank}] {_title(found.item)}{relevance}")
        lines.append(f"    {_clipped(found.text)}")
    if result.judgement is not None and result.judgement.score is not None:
        judgement = result.judgement
        lines.append("")
        lines.append(
            f"judge: {judgement.score:.2f}, risk {judgement.risk_level}, by {printable(judgement.model)}"
        )
    write("\n".join(lines) + "\n")
    if result.report is not None and not result.cannot_answer:
        from surefoot.report.table import print_report

        report = result.report
        write("\n")
        show(lambda console: print_report(report, console))


def _cited(result: PipelineResult) -> set[int]:
    """Positions of the passages that the answer cites."""
    if result.report is None:
        return set()
    named = {citation.source_id for citation in result.report.citations}
    return {position for position, source in enumerate(result.sources) if source.id in named}


def _title(source: object) -> str:
    from surefoot.report.wording import printable
    from surefoot.schema import Source

    if not isinstance(source, Source):
        return ""
    title = f"{source.title} ({source.id})" if source.title and source.title != source.id else source.id
    return printable(title[:200])


def _clipped(text: str) -> str:
    from surefoot.report.wording import printable

    line = " ".join(printable(text[: 2 * _SHOWN]).split())
    cut = len(text) > 2 * _SHOWN or len(line) > _SHOWN
    return line[:_SHOWN].rstrip() + "..." if cut else line
