"""``surefoot check``: an answer against its sources."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli.output import (
    FAILED,
    FINE,
    UNDER_THRESHOLD,
    WRONG_INPUT,
    errors,
    fail,
    progress,
    say,
    show,
    write,
)

if TYPE_CHECKING:
    from surefoot.cli.request import CheckRequest
    from surefoot.schema import TruthfulnessReport

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(check)


class CitationRule(StrEnum):
    """Whether an answer has to cite its sources."""

    REQUIRED = "required"
    OPTIONAL = "optional"


def check(
    file: Annotated[
        str | None, typer.Argument(help="A JSON request with answer and sources; - for standard input.")
    ] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="FILE", help="The answer as a text file; - for stdin.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="FILE", help="A source: text, Markdown, HTML, PDF or JSON. Repeat."),
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", help="The question, where it is not in the request.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML file.")
    ] = None,
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under", min=0.0, max=1.0, help="Exit with 1 if the score is lower, or undefined."
        ),
    ] = None,
    citations: Annotated[
        CitationRule, typer.Option("--citations", help="Whether missing citations lower the score.")
    ] = CitationRule.REQUIRED,
    citation_pattern: Annotated[
        str | None,
        typer.Option(
            "--citation-pattern", metavar="REGEX", help="Markers of your own, with the key as group."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", help="Thresholds for a task; `surefoot models show verify` has the names."),
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Read every passage for every claim. Slower.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="A bundled model, a folder, or a hub model that was pulled.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Allow one download of the hub model named by --model.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option("--revision", help="Commit, tag or branch of the hub model.")
    ] = None,
    multilingual: Annotated[
        bool, typer.Option("--multilingual", help="The model of --model reads more than English.")
    ] = False,
    deadline: Annotated[
        float | None,
        typer.Option("--deadline", min=0.001, help="Seconds after which what is left is for review."),
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
    """Check an answer against its sources.

    Exit code: 0 fine, 1 score under the threshold, 2 wrong command or input, 3 the check failed.
    """
    with errors():
        from surefoot.verify import Verifier

        request = _request(file, answer, source or [], question, max_mb)
        if not quiet:
            for warning in request.warnings:
                say(f"warning: {warning}")
        verifier = Verifier(
            model,
            citations=citations.value,
            threads=threads,
            multilingual=multilingual,
            deadline=deadline,
            preset=preset,
            download=download,
            revision=revision,
            arithmetic="int8" if int8 else "float32",
        )
        with progress(quiet=quiet) as step:
            report = verifier.verify(
                request.answer,
                request.sources,
                question=request.question,
                citations=request.citations,
                citation_pattern=citation_pattern,
                exhaustive=exhaustive,
                progress=step,
            )
        if html is not None:
            _write_html(report, html, quiet=quiet)
        if as_json:
            write(report.to_json(indent=2) + "\n")
        elif not quiet:
            _print(report)
    raise typer.Exit(_exit_code(report, fail_under))


def _request(
    file: str | None, answer: str | None, sources: list[str], question: str | None, max_mb: float
) -> CheckRequest:
    import dataclasses

    from surefoot.cli.request import read_files, read_request

    if (file is None) == (answer is None):
        raise typer.BadParameter("give either a JSON request, or --answer FILE with --source FILE")
    if answer is not None:
        return read_files(answer, sources, question=question, max_mb=max_mb)
    if sources:
        raise typer.BadParameter("--source goes with --answer; a JSON request has its own sources")
    request = read_request(file or "-", max_mb=max_mb)
    return request if question is None else dataclasses.replace(request, question=question)


def _exit_code(report: TruthfulnessReport, fail_under: float | None) -> int:
    if report.degraded:
        return FAILED  # before the threshold: a score of half a check settles nothing
    if fail_under is not None and (report.score is None or not report.score >= fail_under):
        return UNDER_THRESHOLD
    return FINE


def _print(report: TruthfulnessReport) -> None:
    from surefoot.report.table import print_report

    show(lambda console: print_report(report, console))


def _write_html(report: TruthfulnessReport, path: Path, *, quiet: bool) -> None:
    from surefoot.report.html import write_html

    try:
        write_html(report, path)
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror or error}", WRONG_INPUT)
    if not quiet:
        say(f"report written to {path}")
