"""``surefoot models``: what is on this machine, and how more gets here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surefoot.cli.output import errors, show, write
from surefoot.errors import ModelNotFoundError
from surefoot.report.wording import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["register"]

models_app = typer.Typer(help="The models on this machine.", invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.add_typer(models_app, name="models")


@models_app.callback()
def _models(context: typer.Context) -> None:
    """The models on this machine; without a command: list them."""
    if context.invoked_subcommand is None:
        models_list(as_json=False)


@models_app.command("list")
def models_list(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the models of the package."""
    with errors():
        from surefoot.models.manifest import list_models

        records = [_model_facts(record) for record in list_models()]
        if as_json:
            write(json.dumps(records, indent=2) + "\n")
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

        show(table)


@models_app.command("show")
def models_show(name: Annotated[str, typer.Argument(help="Name of a model of the package.")]) -> None:
    """Show everything recorded about a model, as JSON."""
    with errors():
        from surefoot.models.manifest import list_models

        records = {record.name: record for record in list_models()}
        if name not in records:
            known = ", ".join(records) or "none"
            raise ModelNotFoundError(f"no model of the package is called {name!r}; there are: {known}")
        import dataclasses

        write(json.dumps(dataclasses.asdict(records[name]), indent=2, default=str) + "\n")


@models_app.command("pull")
def models_pull(
    name: Annotated[str, typer.Argument(help="organisation/model on the Hugging Face hub.")],
    revision: Annotated[
        str | None, typer.Option("--revision", help="Branch, tag or commit; it is pinned.")
    ] = None,
) -> None:
    """Download a model, once; later runs find it without the network."""
    with errors():
        from surefoot.models.hub import pull

        write(f"{printable(str(pull(name, revision=revision)))}\n")


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
