"""The command line: thin over the library, and quick to start. One module a command.

Exit codes: 0 fine; 1 a result is under (or over) the threshold asked for, or undefined there; 2 the command
or its input is wrong; 3 a step failed, so that the result is incomplete.
"""

from __future__ import annotations

from typing import Annotated

import typer

import surefoot
from surefoot.cli import ask, check, doctor, index, judge, models, rerank, search
from surefoot.cli.output import write

__all__ = ["app"]

app = typer.Typer(
    name="surefoot",
    help="Shows which sentences of an LLM's answer stand on their sources.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        write(f"surefoot {surefoot.__version__}\n")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Shows which sentences of an LLM's answer stand on their sources."""


for _command in (check, ask, judge, rerank, index, search, models, doctor):
    _command.register(app)
