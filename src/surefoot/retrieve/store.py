"""A folder on disk that always holds one whole index, old or new.

Every save writes a folder of its own, brings it to the disk, and then replaces one small file that names it.
A crash at any moment leaves the index of before. The small file holds the sha256 of every other file and of
itself. Nothing in it is a pickle.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from surefoot.errors import InputError, ModelIntegrityError
from surefoot.models.safefiles import hash_file, inside, write_text

__all__ = ["CONTENTS", "FORMAT_VERSION", "is_index", "read_folder", "write_folder"]

CONTENTS: Final = "surefoot-index.json"
"""The file that makes a folder an index."""

FORMAT_VERSION: Final = 1
"""Raised when older readers would misread the files."""

_FORMAT: Final = "surefoot-index"
_GENERATION: Final = re.compile(r"data-[0-9a-f]{16}")
_UNFINISHED: Final = re.compile(r"unfinished-[0-9a-f]{16}")
_STALE_SECONDS: Final = 3600.0
_LIMIT: Final = 4 << 20


def is_index(folder: Path) -> bool:
    """Whether the folder holds an index, whole or damaged."""
    return (folder / CONTENTS).is_file()


def write_folder(folder: Path, write: Callable[[Path], Mapping[str, Any]]) -> None:
    """Make ``folder`` hold a new index.

    Args:
        folder: does not exist, is empty, or holds an index, which is replaced.
        write: puts the files into the folder that it is given, and returns what describes them, as JSON.

    Raises:
        InputError: the folder holds something else, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [item.name for item in folder.iterdir() if not _own(item.name)]
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    if others and not is_index(folder):
        raise InputError(f"{folder} holds no index but other files ({min(others)[:80]}); give another folder")
    work = folder / f"unfinished-{secrets.token_hex(8)}"
    try:
        work.mkdir()
        described = write(work)
        files = {
            path.relative_to(work).as_posix(): {"sha256": hash_file(path), "bytes": path.stat().st_size}
            for path in sorted(work.rglob("*"))
            if path.is_file()
        }
        for name in files:
            _to_disk(work / name)
        for place in (*(path for path in work.rglob("*") if path.is_dir()), work):
            _to_disk(place)
        final = folder / work.name.replace("unfinished-", "data-")
        work.rename(final)
        _to_disk(folder)
        contents = {
            "format": _FORMAT,
            "version": FORMAT_VERSION,
            "data": final.name,
            "files": files,
            "index": dict(described),
        }
        contents["sha256"] = _digest(contents)
        write_text(folder / CONTENTS, json.dumps(contents, indent=1, allow_nan=False) + "\n")
        _to_disk(folder / CONTENTS)
        _to_disk(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _clean(folder, keep=final.name)


def read_folder(folder: Path, *, verify: bool = True) -> tuple[Path, dict[str, Any]]:
    """Where the files of the index lie, and what describes them.

    Args:
        folder: holds an index.
        verify: compare every file with its sha256; otherwise only the sizes.

    Raises:
        InputError: it holds none, one of a newer format, or a damaged one.
    """
    for attempt in range(3):
        contents = _contents(folder)
        data = folder / str(contents["data"])
        if data.is_dir() or attempt == 2:
            break
        # Replaced between the two looks: the next look finds the new one.
    for name, recorded in contents["files"].items():
        try:
            path = inside(data, name)
        except ModelIntegrityError as error:
            raise InputError(f"{folder}: {error}") from error
        if path is None:
            raise InputError(f"{folder}: the index is damaged: {name[:80]!r} is missing")
        if path.stat().st_size != recorded["bytes"] or (verify and hash_file(path) != recorded["sha256"]):
            raise InputError(f"{folder}: the index is damaged: {name[:80]!r} is not as it was written")
    described: dict[str, Any] = contents["index"]
    return data, described


def _contents(folder: Path) -> dict[str, Any]:
    path = folder / CONTENTS
    if not path.is_file():
        raise InputError(f"{folder} is no index: it has no {CONTENTS}")
    try:
        with path.open("rb") as stream:
            contents = json.loads(stream.read(_LIMIT))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {type(error).__name__}") from error
    if not isinstance(contents, dict) or contents.get("format") != _FORMAT:
        raise InputError(f"{path} is not the contents of an index")
    version = contents.get("version")
    if type(version) is not int or version > FORMAT_VERSION:
        raise InputError(
            f"{folder} has format {version!r:.20}, and this surefoot reads up to {FORMAT_VERSION}; "
            "update surefoot"
        )
    if contents.get("sha256") != _digest({key: contents[key] for key in contents if key != "sha256"}):
        raise InputError(f"{path}: the index is damaged: its checksum is another")
    if not _GENERATION.fullmatch(str(contents.get("data"))):
        raise InputError(f"{path}: the index is damaged: it names no data")
    return contents


def _digest(contents: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode("ascii")).hexdigest()


def _own(name: str) -> bool:
    """Whether surefoot itself makes files of this name in the folder."""
    return bool(_GENERATION.fullmatch(name) or _UNFINISHED.fullmatch(name)) or name.startswith(
        (CONTENTS, f".{CONTENTS}", "embedded.journal")
    )


def _clean(folder: Path, *, keep: str) -> None:
    """Take away what older saves left. A reader that has it mapped keeps it until it is done (POSIX)."""
    for path in folder.iterdir():
        stale = False
        with contextlib.suppress(OSError):
            stale = time.time() - path.stat().st_mtime > _STALE_SECONDS
        old = _GENERATION.fullmatch(path.name) and path.name != keep
        if old or (stale and _UNFINISHED.fullmatch(path.name)):
            shutil.rmtree(path, ignore_errors=True)


def _to_disk(path: Path) -> None:
    """Flush a file, or a folder where the system can, to the disk."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
