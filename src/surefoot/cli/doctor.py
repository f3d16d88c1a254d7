"""``surefoot doctor``: whether this installation can be trusted."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from surefoot.cli.output import FAILED, FINE, errors, write
from surefoot.report.wording import printable

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="As for check.")] = None,
) -> None:
    """Examine this installation: versions, processor, model files, self-test. Exit code 3 if it fails."""
    with errors():
        from surefoot.doctor import examine

        found = examine(threads=threads)
        write(json.dumps(found, indent=2) + "\n" if as_json else _doctor_text(found))
    raise typer.Exit(FINE if found["ok"] else FAILED)


def _doctor_text(found: dict[str, Any]) -> str:
    def versions(packages: dict[str, str | None]) -> str:
        return ", ".join(f"{name} {version or 'missing'}" for name, version in packages.items())

    processor = found["processor"]
    lines = [
        f"surefoot    {found['surefoot']}, Python {found['python']}, {found['platform']}",
        f"processor   {processor['model']}; {', '.join(processor['features']) or 'no known features'}",
        "arithmetic  float32; int8 on request"
        + (" (VNNI or AMX)" if processor["int8"] else " is not to be had here: neither VNNI nor AMX"),
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
