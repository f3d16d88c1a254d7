"""Reading files that somebody else made: bounded JSON, streamed hashes, no path that leads outside."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from surefoot.errors import ModelIntegrityError

__all__ = ["cache_dir", "hash_file", "inside", "read_json", "write_text"]

_JSON_LIMIT: Final = 4 << 20
_CHUNK: Final = 1 << 20


def cache_dir() -> Path:
    """Where surefoot keeps what it downloads and converts; not created here.

    ``$SUREFOOT_CACHE``, or a folder ``surefoot`` in the platform's cache directory: ``$XDG_CACHE_HOME`` or
    ``~/.cache``, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on Windows.
    """
    if chosen := os.environ.get("SUREFOOT_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "surefoot"


def inside(folder: Path, relative: str) -> Path | None:
    """The real path of a file below ``folder``, or ``None`` when there is no such file.

    Links are followed, but only to places below the folder itself, or, for a snapshot in the hub's own
    cache (``<repository>/snapshots/<commit>``), to that repository's ``blobs``.

    Raises:
        ModelIntegrityError: the path is absolute, climbs, or a link leads elsewhere.
    """
    parts = relative.replace("\\", "/").split("/")
    if "" in parts or "." in parts or ".." in parts or "\0" in relative or ":" in parts[0]:
        raise ModelIntegrityError(f"not a path inside a model folder: {relative[:200]!r}")
    root = folder.resolve()
    path = root.joinpath(*parts)
    if not path.is_file():
        return None
    real = path.resolve()
    allowed = [root]
    if root.parent.name == "snapshots":
        allowed.append(root.parent.parent / "blobs")
    if not any(real.is_relative_to(place) for place in allowed):
        raise ModelIntegrityError(f"{relative!r} is a link to a place outside the model folder")
    # The name inside the folder is kept: ONNX Runtime looks for external data next to it.
    return path


def read_json(path: Path, *, limit: int = _JSON_LIMIT) -> dict[str, Any]:
    """A JSON object from a file of at most ``limit`` bytes.

    Raises:
        ModelIntegrityError: too large, unreadable, not UTF-8, not JSON, or not an object.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise ModelIntegrityError(f"{path.name} is larger than {limit} bytes")
        value = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelIntegrityError(f"{path.name} cannot be read as JSON: {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise ModelIntegrityError(f"{path.name} holds no JSON object")
    return value


def hash_file(path: Path) -> str:
    """sha256 of a file's content, as 64 hex digits, read in pieces of 1 MiB."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise ModelIntegrityError(f"{path.name} cannot be read: {type(error).__name__}") from error
    return digest.hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old content or the new, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
