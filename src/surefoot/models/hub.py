"""Models of the Hugging Face hub: downloaded once, on request, at one commit that is then kept.

The first download of a name resolves its branch to a commit and writes that commit and the sha256 of every
file to a lock file. From then on the name means that commit, the files are checked against the lock at
every load, and the network is not touched: not even to ask whether there is something newer.

Layout below the cache directory (see :func:`surefoot.models.safefiles.cache_dir`)::

    hub/<organisation>--<model>/lock.json
    hub/<organisation>--<model>/<commit>/config.json, onnx/model.onnx, ...
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from surefoot.errors import (
    ConfigurationError,
    DownloadRefusedError,
    ModelError,
    ModelIntegrityError,
    ModelNotFoundError,
)
from surefoot.models.records import TOKENIZER_FILES
from surefoot.models.safefiles import cache_dir, hash_file, inside, read_json, write_text

__all__ = ["is_hub_name", "locate", "pull"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_LOCK: Final = "lock.json"
_TIMEOUT: Final = 10.0
"""Seconds that the hub may take to answer a question; transfers have the hub client's own read timeout."""

_MOST_BYTES: Final = 4 << 30
_ONNX: Final = ("onnx/model.onnx", "model.onnx")
_SAFETENSORS: Final = "model.safetensors"
_SMALL_FILES: Final = (
    "config.json",
    *TOKENIZER_FILES,
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)
_PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5")


def is_hub_name(name: str) -> bool:
    """Whether ``name`` has the form ``organisation/model`` that a hub name must have."""
    return _NAME.fullmatch(name) is not None and "--" not in name and ".." not in name


def locate(name: str, *, revision: str | None = None, download: bool = False) -> Path:
    """The folder of a hub model, its files checked against the lock.

    Args:
        name: ``organisation/model``.
        revision: commit, branch or tag; ``None`` for the pinned one.
        download: allow a download when the model is not there.

    Raises:
        ConfigurationError: not a hub name, or not a revision.
        DownloadRefusedError: not in the cache, and ``download`` is false.
        ModelIntegrityError: a file differs from the lock.
        ModelError: as :func:`pull`.
    """
    _check_names(name, revision)
    place = _place(name)
    commit = _known_commit(place, revision)
    if commit is not None:
        return _verified(place, commit, name)
    if not download:
        raise DownloadRefusedError(
            f"{name!r}{f' at {revision!r}' if revision else ''} is not on this machine. Fetch it once with "
            f"`surefoot models pull {name}`, or allow it with --download (download=True)"
        )
    return _fetch(name, place, revision=revision, token=None, pin=False)


def pull(name: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """Download a model from the hub, and pin it.

    Only data files are taken: ``config.json``, the tokenizer, and the weights as ``onnx/model.onnx`` or,
    where there is none, ``model.safetensors``. A model that is pinned already is checked and left as it is,
    without the network, unless ``revision`` is given; the name then means the new commit.

    Args:
        name: ``organisation/model``.
        revision: commit, branch or tag; ``None`` for the pinned commit, or ``main`` the first time.
        token: access token for private models; ``None`` for the hub client's own (``$HF_TOKEN``).

    Returns:
        The folder with the files.

    Raises:
        ConfigurationError: not a hub name, or not a revision.
        ModelNotFoundError: the hub has no such model or revision, or does not show it to this token.
        ModelIntegrityError: only pickled weights, or a file differs from what the hub or the lock says.
        DownloadRefusedError: the hub client is switched to offline (``$HF_HUB_OFFLINE``).
        ModelError: the hub is unreachable or failed. What had arrived until then is thrown away.
    """
    _check_names(name, revision)
    place = _place(name)
    if revision is None and (commit := _known_commit(place, None)) is not None:
        if (place / commit).exists():
            return _verified(place, commit, name)
        revision = commit  # its folder was deleted: the same files again, whatever the branch means now
    return _fetch(name, place, revision=revision, token=token, pin=True)


def _check_names(name: str, revision: str | None) -> None:
    if not isinstance(name, str) or not is_hub_name(name):
        raise ConfigurationError(f"not a hub name of the form organisation/model: {str(name)[:200]!r}")
    if revision is not None and (_REVISION.fullmatch(revision) is None or ".." in revision):
        raise ConfigurationError(f"not a revision: {revision[:200]!r}")


def _place(name: str) -> Path:
    return cache_dir() / "hub" / name.replace("/", "--")


def _read_lock(place: Path) -> dict[str, Any]:
    path = place / _LOCK
    if not path.is_file():
        return {"pinned": None, "commits": {}}
    lock = read_json(path)
    commits = lock.get("commits")
    if not isinstance(commits, dict) or not all(_COMMIT.fullmatch(commit) for commit in commits):
        raise ModelIntegrityError(f"{path} is damaged; delete {place} and pull the model again")
    return lock


def _known_commit(place: Path, revision: str | None) -> str | None:
    """The commit that a revision means without asking the hub, if it has been downloaded."""
    lock = _read_lock(place)
    wanted = lock.get("pinned") if revision is None else revision
    if wanted in lock["commits"]:
        return str(wanted)
    for commit, entry in lock["commits"].items():
        if revision is not None and isinstance(entry, dict) and revision in entry.get("names", ()):
            return str(commit)
    return None


def _verified(place: Path, commit: str, name: str) -> Path:
    folder = place / commit
    files = _read_lock(place)["commits"][commit].get("files")
    if not isinstance(files, dict) or not files:
        raise ModelIntegrityError(f"{place / _LOCK} is damaged; delete {place} and pull the model again")
    for path, digest in files.items():
        found = inside(folder, path)
        if found is None or hash_file(found) != digest:
            state = "missing" if found is None else "not what was downloaded"
            raise ModelIntegrityError(f"{name}: {path} is {state}; delete {folder} and pull the model again")
    present = {item.relative_to(folder).as_posix() for item in folder.rglob("*") if not item.is_dir()}
    if extra := present - set(files):
        raise ModelIntegrityError(f"{name}: {min(extra)} was not downloaded by surefoot; delete {folder}")
    return folder


def _fetch(name: str, place: Path, *, revision: str | None, token: str | None, pin: bool) -> Path:
    from huggingface_hub import HfApi, hf_hub_download

    endpoint = os.environ.get("HF_ENDPOINT") or None  # the client itself reads it once, when it is imported
    with _hub_errors(name, revision):
        info = HfApi(endpoint=endpoint, token=token).model_info(
            name, revision=revision or "main", timeout=_TIMEOUT, files_metadata=True
        )
    commit = str(info.sha)
    if _COMMIT.fullmatch(commit) is None:
        raise ModelError(f"{name}: the hub named no commit")
    offered = {item.rfilename: item for item in info.siblings or ()}
    wanted = _choose(set(offered), name)
    size = sum(int(offered[path].size or 0) for path in wanted)
    if size > _MOST_BYTES:
        raise ModelError(f"{name} takes {size >> 20} MiB; the limit is {_MOST_BYTES >> 20} MiB")

    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, prefix=".pull-") as folder:
        part = Path(folder)
        for path in wanted:
            with _hub_errors(name, revision):
                hf_hub_download(
                    name,
                    path,
                    revision=commit,
                    local_dir=part,
                    token=token,
                    endpoint=endpoint,
                    etag_timeout=_TIMEOUT,
                )
        shutil.rmtree(part / ".cache", ignore_errors=True)  # the hub client's notes on the transfer
        files = {path: _checked(part, path, offered[path], name) for path in wanted}
        lock = _read_lock(place)
        old = lock["commits"].pop(commit, {})
        if old and old.get("files") != files:
            raise ModelIntegrityError(f"{name}: the hub now sends other files for the commit {commit}")
        target = place / commit
        if target.exists():  # left over from an interrupted or damaged pull: the lock did not vouch for it
            shutil.rmtree(target)
        part.rename(target)
        part.mkdir()  # for the context manager to remove
    names = {revision or "main"} - {commit}
    for entry in lock["commits"].values():
        entry["names"] = sorted(set(entry.get("names", ())) - names)
    lock["commits"][commit] = {"names": sorted(names.union(old.get("names", ()))), "files": files}
    if pin or lock.get("pinned") not in lock["commits"]:
        lock["pinned"] = commit
    write_text(place / _LOCK, json.dumps({"name": name, **lock}, indent=2, sort_keys=True) + "\n")
    return target


def _choose(offered: set[str], name: str) -> list[str]:
    """The files to take, ONNX before safetensors, and never anything else."""
    wanted = [path for path in _SMALL_FILES if path in offered]
    if "config.json" not in offered:
        raise ModelNotFoundError(f"{name} has no config.json: not a model that surefoot can load")
    onnx = next((path for path in _ONNX if path in offered), None)
    if onnx is not None:
        return [*wanted, onnx, *(path for path in (onnx + "_data",) if path in offered)]
    if _SAFETENSORS in offered:
        return [*wanted, _SAFETENSORS]
    if pickles := sorted(path for path in offered if path.endswith(_PICKLES)):
        raise ModelIntegrityError(f"{name} has only pickled weights ({pickles[0]}), which are never opened")
    raise ModelNotFoundError(f"{name} has neither model.onnx nor model.safetensors")


def _checked(folder: Path, path: str, offered: Any, name: str) -> str:
    """sha256 of a downloaded file, after comparing it with what the hub announced."""
    found = inside(folder, path)
    if found is None:
        raise ModelError(f"{name}: {path} did not arrive")
    digest = hash_file(found)
    lfs = getattr(offered, "lfs", None)
    announced = getattr(lfs, "sha256", None)
    if offered.size is not None and found.stat().st_size != offered.size:
        raise ModelIntegrityError(f"{name}: {path} arrived with the wrong size")
    if announced is not None and announced != digest:
        raise ModelIntegrityError(f"{name}: the sha256 of {path} is not the one that the hub announced")
    return digest


class _hub_errors:  # noqa: N801 - used like a function
    """Turns what the hub client raises into surefoot's exceptions; never repeats a token or a URL."""

    def __init__(self, name: str, revision: str | None) -> None:
        self._what = f"{name!r}" + (f" at {revision!r}" if revision else "")

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return
        from huggingface_hub.errors import OfflineModeIsEnabled

        if isinstance(error, OfflineModeIsEnabled):
            raise DownloadRefusedError("HF_HUB_OFFLINE is set: the hub client refuses to connect") from error
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in (401, 403, 404):
            raise ModelNotFoundError(
                f"the hub shows no model {self._what} (HTTP {status}): check the spelling; a private or "
                "gated model needs a token that may read it"
            ) from error
        if status is not None:
            raise ModelError(f"the hub failed on {self._what} (HTTP {status}); try again later") from error
        # No common base: the client passes on the errors of its HTTP library, of the socket and of the disk.
        raise ModelError(f"{self._what} could not be downloaded ({type(error).__name__})") from error
