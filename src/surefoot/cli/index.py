"""``surefoot index``: files into a folder that ``surefoot search`` finds passages in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from surefoot.cli.output import FAILED, FINE, errors, fail, progress, say, write
from surefoot.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from surefoot.inference.embedding import Embedder
    from surefoot.retrieve import Index

__all__ = ["Pooling", "embedder_of", "register"]

INTERRUPTED: Final = 130
"""What a shell reports for Ctrl-C."""

_JOURNAL: Final = "embedded.journal"
_SUFFIXES: Final = frozenset(
    (".txt", ".md", ".markdown", ".rst", ".html", ".htm", ".xhtml", ".pdf", ".json", ".text")
)
"""What is taken from a folder; a file that is named itself is taken whatever it is called."""


class Pooling(StrEnum):
    """How token vectors become one vector, where a model's folder does not say."""

    MEAN = "mean"
    CLS = "cls"


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(index)


def index(
    paths: Annotated[
        list[str], typer.Argument(help="Text, Markdown, HTML, PDF or JSON files, or folders of them.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The index; updated if it exists.")],
    size: Annotated[
        int | None, typer.Option("--size", help="Most characters of a passage; 800 for a new index.")
    ] = None,
    overlap: Annotated[
        int | None, typer.Option("--overlap", help="Characters that neighbouring passages share.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="An embedder: a folder, or a hub model that was pulled.")
    ] = None,
    pooling: Annotated[
        Pooling | None, typer.Option("--pooling", help="For --model, where its folder does not say.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="Threads to compute with; default: all cores allowed."),
    ] = None,
    max_mb: Annotated[
        float, typer.Option("--max-mb", min=0.001, help="Pass over files of more megabytes.")
    ] = 64.0,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Begin anew instead of updating.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only errors and what was asked for.")
    ] = False,
) -> None:
    """Make or update an index of files, for ``surefoot search``.

    What did not change is not computed again. Sources whose files are gone from the PATHs are taken out;
    those of other paths stay. After Ctrl-C, the same command goes on where it was.

    Exit code: 0 fine, 2 wrong command or input, 3 some files could not be read (the others are in the index).
    """
    with errors():
        files = _files(paths, out)
        embedder = embedder_of(model, pooling, threads)
        target = _target(out, embedder, size, overlap, rebuild=rebuild)
        sources, skipped = _read(files, max_mb, quiet=quiet)
        kept = {name for name in target.source_ids if _under(name, skipped)}
        named = {str(source["id"]) for source in sources}
        gone = [
            name
            for name in target.source_ids
            if name not in named and name not in kept and _under(name, paths)
        ]
        journal = out / _JOURNAL
        try:
            with progress("embedding", quiet=quiet) as step:
                added = target.add(sources, checkpoint=journal, progress=step)
            removed = target.remove(gone)
            target.save(out)
        except KeyboardInterrupt:
            fail("interrupted; the same command goes on where it was", INTERRUPTED)
        journal.unlink(missing_ok=True)
        done = {
            "index": str(out),
            "files": len(files),
            "skipped": len(skipped),
            "added": added.added,
            "replaced": added.replaced,
            "unchanged": added.unchanged,
            "removed": removed.removed,
            "embedded": added.embedded,
            **target.describe(),
        }
        if as_json:
            write(json.dumps(done, indent=2) + "\n")
        elif not quiet:
            write(_summary(done))
    raise typer.Exit(FAILED if skipped else FINE)


def embedder_of(model: str | None, pooling: Pooling | None, threads: int | None) -> Embedder:
    """The embedder that the options name."""
    from surefoot.inference.embedding import Embedder

    return Embedder(model, pooling=None if pooling is None else pooling.value, threads=threads)


def _target(out: Path, embedder: Embedder, size: int | None, overlap: int | None, *, rebuild: bool) -> Index:
    """The index to add to: that of the folder, or a new one."""
    from surefoot.retrieve import Index, PassageChunker
    from surefoot.retrieve.store import is_index

    if is_index(out) and not rebuild:
        found = Index.load(out, embedder=embedder)
        own = found.describe()["chunker"]
        for name, wanted in (("size", size), ("overlap", overlap)):
            if wanted is not None and own.get(name) != wanted:
                raise InputError(
                    f"{out} was made with --{name} {own.get(name)}; --rebuild makes it anew with another"
                )
        return found
    default = PassageChunker()
    chunker = PassageChunker(
        size=default.size if size is None else size, overlap=default.overlap if overlap is None else overlap
    )
    return Index(embedder=embedder, chunker=chunker)


def _files(paths: list[str], out: Path) -> list[str]:
    """The files that the paths name, in order and each once.

    Raises:
        InputError: a path does not exist.
    """
    found: dict[str, None] = {}
    for path in paths:
        try:
            is_file, is_folder = Path(path).is_file(), Path(path).is_dir()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise InputError(f"{path}: cannot be read: {error}") from error
        if is_file:
            found[Path(path).as_posix()] = None
        elif is_folder:
            found |= dict.fromkeys(item.as_posix() for item in _walk(Path(path), out.resolve()))
        else:
            raise InputError(f"{path}: there is no such file or folder")
    return list(found)


def _walk(folder: Path, out: Path) -> Iterator[Path]:
    """Readable files below a folder, by name; hidden ones, links to folders and the index itself left out."""
    for item in sorted(folder.iterdir()):
        if item.name.startswith("."):
            continue
        if item.is_dir():
            if not item.is_symlink() and item.resolve() != out:
                yield from _walk(item, out)
        elif item.suffix.lower() in _SUFFIXES and item.is_file():
            yield item


def _read(files: list[str], max_mb: float, *, quiet: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """Sources by file, and the files that could not be read: one bad file does not stop the others."""
    from surefoot.cli.request import read_sources

    sources: list[dict[str, Any]] = []
    skipped: list[str] = []
    for path in files:
        warnings: list[str] = []
        try:
            read = read_sources([path], warnings, max_mb=max_mb)
        except (InputError, MissingExtraError) as error:
            skipped.append(path)
            say(f"skipped: {error}")
            continue
        for at, item in enumerate(read, start=1):
            record: dict[str, Any] = dict(item) if isinstance(item, Mapping) else {"text": item or ""}
            own = record.get("id", at)
            record["id"] = path if len(read) == 1 else f"{path}#{own}"
            record["metadata"] = {**(record.get("metadata") or {}), "path": path}
            sources.append(record)
        for warning in () if quiet else warnings:
            say(f"warning: {warning}")
    return sources, skipped


def _under(source_id: str, paths: list[str]) -> bool:
    """Whether a source was read from one of the paths, or from below one."""
    for path in paths:
        name = Path(path).as_posix()
        if (
            (name == "." and not Path(source_id).is_absolute())
            or source_id == name
            or source_id.startswith((f"{name}/", f"{name}#"))
        ):
            return True
    return False


def _summary(done: Mapping[str, Any]) -> str:
    from surefoot.report.wording import printable

    parts = [f"{done[name]} {name}" for name in ("added", "replaced", "unchanged", "removed") if done[name]]
    skipped = f", {done['skipped']} files skipped" if done["skipped"] else ""
    return (
        printable(
            f"{done['index']}: {done['sources']} sources, {done['passages']} passages "
            f"({', '.join(parts) or 'nothing to do'}; {done['embedded']} passages embedded{skipped})"
        )
        + "\n"
    )
