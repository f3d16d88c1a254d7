"""The command line: thin over the library, and quick to start.

Exit codes of ``surefoot check``: 0 fine; 1 the score is under ``--fail-under``, or undefined there;
2 the command or its input is wrong; 3 a step of the check failed, so that the report is incomplete.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import surefoot
from surefoot.errors import (
    DownloadRefusedError,
    EndpointError,
    ModelError,
    ModelNotFoundError,
    SurefootError,
)
from surefoot.wording import printable

if TYPE_CHECKING:
    from rich.console import Console

    from surefoot.request import CheckRequest
    from surefoot.schema import TruthfulnessReport

__all__ = ["app"]

FINE, UNDER_THRESHOLD, WRONG_INPUT, FAILED = 0, 1, 2, 3

app = typer.Typer(
    name="surefoot",
    help="Shows which sentences of an LLM's answer stand on their sources.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
models_app = typer.Typer(help="The models on this machine.", invoke_without_command=True)
app.add_typer(models_app, name="models")


class CitationRule(StrEnum):
    """Whether an answer has to cite its sources."""

    REQUIRED = "required"
    OPTIONAL = "optional"


def _version(wanted: bool) -> None:
    if wanted:
        _write(f"surefoot {surefoot.__version__}\n")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Shows which sentences of an LLM's answer stand on their sources."""


@app.command()
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
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Read every passage for every claim. Slower.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="A bundled model, a folder, or a hub model that was pulled.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="Threads to compute with; default: all cores allowed."),
    ] = None,
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
    with _errors():
        from surefoot.verify import Verifier

        request = _request(file, answer, source or [], question, max_mb)
        if not quiet:
            for warning in request.warnings:
                _say(f"warning: {warning}")
        verifier = Verifier(model, citations=citations.value, threads=threads)
        with _progress(quiet=quiet) as progress:
            report = verifier.verify(
                request.answer,
                request.sources,
                question=request.question,
                citations=request.citations,
                citation_pattern=citation_pattern,
                exhaustive=exhaustive,
                progress=progress,
            )
        if html is not None:
            _write_html(report, html, quiet=quiet)
        if as_json:
            _write(report.to_json(indent=2) + "\n")
        elif not quiet:
            _print(report)
    raise typer.Exit(_exit_code(report, fail_under))


def _request(
    file: str | None, answer: str | None, sources: list[str], question: str | None, max_mb: float
) -> CheckRequest:
    import dataclasses

    from surefoot.request import read_files, read_request

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
    from surefoot.report import print_report

    _show(lambda console: print_report(report, console))


def _write_html(report: TruthfulnessReport, path: Path, *, quiet: bool) -> None:
    from surefoot.html import write_html

    try:
        write_html(report, path)
    except OSError as error:
        _fail(f"{path}: cannot be written: {error.strerror or error}", WRONG_INPUT)
    if not quiet:
        _say(f"report written to {path}")


@models_app.callback()
def _models(context: typer.Context) -> None:
    """The models on this machine; without a command: list them."""
    if context.invoked_subcommand is None:
        models_list(as_json=False)


@models_app.command("list")
def models_list(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the models of the package."""
    with _errors():
        from surefoot.manifest import list_models

        records = [_model_facts(record) for record in list_models()]
        if as_json:
            _write(json.dumps(records, indent=2) + "\n")
            return

        def table(console: Console) -> None:
            from rich.table import Table
            from rich.text import Text

            view = Table(box=None, padding=(0, 2, 0, 0))
            columns = ("name", "task", "license", "size", "sha256", "where")
            for column in columns:
                view.add_column(column, overflow="fold")
            for facts in records:
                cells = {
                    **facts,
                    "size": _megabytes(facts["size"]),
                    "sha256": str(facts["sha256"] or "")[:12],
                }
                view.add_row(*(Text(printable(str(cells[column] or ""))) for column in columns))
            console.print(view)

        _show(table)


@models_app.command("show")
def models_show(name: Annotated[str, typer.Argument(help="Name of a model of the package.")]) -> None:
    """Show everything recorded about a model, as JSON."""
    with _errors():
        from surefoot.manifest import list_models

        records = {record.name: record for record in list_models()}
        if name not in records:
            known = ", ".join(records) or "none"
            raise ModelNotFoundError(f"no model of the package is called {name!r}; there are: {known}")
        import dataclasses

        _write(json.dumps(dataclasses.asdict(records[name]), indent=2, default=str) + "\n")


@models_app.command("pull")
def models_pull(
    name: Annotated[str, typer.Argument(help="organisation/model on the Hugging Face hub.")],
    revision: Annotated[
        str | None, typer.Option("--revision", help="Branch, tag or commit; it is pinned.")
    ] = None,
) -> None:
    """Download a model, once; later runs find it without the network."""
    with _errors():
        from surefoot.hub import pull

        _write(f"{printable(str(pull(name, revision=revision)))}\n")


def _model_facts(record: Any) -> dict[str, Any]:
    sizes = [file.bytes for file in record.files]
    weights = max(record.files, key=lambda file: file.bytes, default=None)
    return {
        "name": record.name,
        "task": record.task,
        "license": record.license,
        "size": sum(sizes),
        "sha256": None if weights is None else weights.sha256,
        "where": "package",
    }


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="As for check.")] = None,
) -> None:
    """Examine this installation: versions, processor, model files, self-test. Exit code 3 if it fails."""
    with _errors():
        from surefoot.doctor import examine

        found = examine(threads=threads)
        _write(json.dumps(found, indent=2) + "\n" if as_json else _doctor_text(found))
    raise typer.Exit(FINE if found["ok"] else FAILED)


def _doctor_text(found: dict[str, Any]) -> str:
    def versions(packages: dict[str, str | None]) -> str:
        return ", ".join(f"{name} {version or 'missing'}" for name, version in packages.items())

    processor = found["processor"]
    lines = [
        f"surefoot    {found['surefoot']}, Python {found['python']}, {found['platform']}",
        f"processor   {processor['model']}; {', '.join(processor['features']) or 'no known features'}",
        f"threads     {found['threads']}",
        f"packages    {versions(found['packages'])}",
    ]
    for extra, packages in found["extras"].items():
        installed = "installed" if all(packages.values()) else "not installed"
        lines.append(f"extra       {extra}: {installed} ({versions(packages)})")
    for model in found["models"]:
        lines.append(
            f"model       {model['name']} ({model['task']}): {model['problem'] or 'sha256 as recorded'}"
        )
    test = found["self_test"]
    lines.append(f"self-test   {'passed' if test['passed'] else 'FAILED'}: {test['detail']}")
    lines.append("everything is in order" if found["ok"] else f"{len(found['problems'])} problem(s)")
    return "\n".join(printable(line) for line in lines) + "\n"


# output and errors


def _show(render: Callable[[Console], None]) -> None:
    """Let ``render`` print to a console, and write what it printed in one go.

    Capturing first keeps a reader that closes the pipe early (``| head``) from changing the exit code.
    """
    from rich.console import Console

    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        render(console)
    _write(capture.get())


def _write(text: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, errors="backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads on. Python would complain once more when it closes the stream at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str) -> None:
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    text = f"surefoot: {printable(message)}\n"
    sys.stderr.write(text.encode(encoding, errors="backslashreplace").decode(encoding))


def _fail(message: str, code: int) -> NoReturn:
    _say(f"error: {message}")
    raise typer.Exit(code)


@contextmanager
def _errors() -> Iterator[None]:
    """Turn exceptions into one line on standard error and an exit code; SUREFOOT_DEBUG=1 shows them whole."""
    if os.environ.get("SUREFOOT_DEBUG") == "1":
        yield
        return
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except (ModelNotFoundError, DownloadRefusedError) as error:
        _fail(str(error), WRONG_INPUT)
    except (ModelError, EndpointError) as error:
        _fail(str(error), FAILED)
    except SurefootError as error:
        _fail(str(error), WRONG_INPUT)
    except MemoryError:
        _fail("out of memory", FAILED)
    except Exception as error:
        hint = "this is a defect of surefoot; SUREFOOT_DEBUG=1 shows where"
        _say(f"error: {type(error).__name__}: {error}; {hint}")
        raise typer.Exit(FAILED) from error


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, for people only, once the work has taken a second."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    import time

    from rich.console import Console
    from rich.progress import Progress

    began = time.monotonic()
    bar = Progress(console=Console(file=sys.stderr), transient=True)
    task = bar.add_task("checking")

    def step(done: int, total: int) -> None:
        if time.monotonic() - began > 1.0:
            bar.start()
            bar.update(task, completed=done, total=total)

    try:
        yield step
    finally:
        bar.stop()
