"""Model records, and where a model comes from: the package, a folder, or the hub's local cache.

A model is only ever ONNX, JSON and plain ``.npy`` files. Pickled weights are never opened, whatever they
are called, and nothing is fetched unless the caller asks for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from surefoot.errors import ConfigurationError, ModelIntegrityError, ModelNotFoundError
from surefoot.models import hub
from surefoot.models.int8graph import INT8_FILE
from surefoot.models.records import TOKENIZER_FILES, Calibration, FileRecord, ModelRecord, describe
from surefoot.models.safefiles import cache_dir, hash_file, inside, read_json

__all__ = [
    "TASKS",
    "Calibration",
    "FileRecord",
    "ModelRecord",
    "ResolvedModel",
    "bundled",
    "list_models",
    "load_manifest",
    "resolve_model",
]

TASKS: Final = {"nli": "verify", "relevance": "rerank", "embed": "embed", "static": "static"}
"""Task -> name of the bundled model that serves it by default."""

RECORD_FILE: Final = "surefoot.json"
"""In a folder exported by surefoot: the model's own record, with the sha256 of its files."""

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
_DEFAULT_MODEL_FILE = {"static": "table.npy"}
_NOT_IN_FINGERPRINT = ("config.json", INT8_FILE)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model whose files are on this machine and have been checked.

    Attributes:
        record: what is known about it.
        model_path: the ONNX file, or the table of a ``static`` model.
        tokenizer_path: a ``tokenizers`` JSON file.
        source: where it was found; a model converted from safetensors counts as what it was made from.
        fingerprint: sha256 over the contents of the model and tokenizer files, as 64 hex digits. Two
            models with the same fingerprint give the same scores in float32.
        config: the Hugging Face ``config.json``, or ``{}``.
    """

    record: ModelRecord
    model_path: Path
    tokenizer_path: Path
    source: Literal["bundle", "folder", "hub"]
    fingerprint: str
    config: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def int8_path(self) -> Path | None:
        """The graph for int8 arithmetic, where the record lists one."""
        listed = any(item.path == INT8_FILE for item in self.record.files)
        return self.model_path.with_name(INT8_FILE) if listed else None

    def file(self, name: str) -> Path:
        """Path of another file of the record, e.g. ``"idf.npy"``.

        Raises:
            ModelNotFoundError: the record lists no such file.
        """
        if name not in {item.path for item in self.record.files}:
            raise ModelNotFoundError(f"model {self.record.name!r} has no file {name!r}")
        return self.model_path.parent / name


def load_manifest() -> Mapping[str, ModelRecord]:
    """The records of the models in the package, by name.

    Raises:
        ModelIntegrityError: the manifest is missing or malformed: the installation is damaged.
    """
    return _load_manifest(_bundle_folder())


def list_models() -> tuple[ModelRecord, ...]:
    """The records of the models in the package, in the order of the manifest."""
    return tuple(load_manifest().values())


def bundled(name: str) -> ResolvedModel:
    """A model out of the package, its files checked against the manifest.

    Args:
        name: as in the manifest, e.g. ``"verify"``.

    Raises:
        ModelNotFoundError: the package has no such model.
        ModelIntegrityError: a file is missing, or its sha256 differs.
    """
    return _bundled(name, _bundle_folder())


def resolve_model(
    name_or_path: str | os.PathLike[str] | None = None,
    *,
    task: str,
    download: bool = False,
    revision: str | None = None,
) -> ResolvedModel:
    """Find a model and check its files.

    Args:
        name_or_path: ``None`` for the bundled model of the task; the name of a bundled model; a folder
            (Hugging Face layout or surefoot's own), as a path or a string; or a hub name,
            ``"organisation/model"``. A folder that exists wins over a hub name; a bundled name wins over
            both (write ``./verify`` for a folder of that name).
        task: ``"nli"``, ``"relevance"``, ``"embed"`` or ``"static"``.
        download: allow one download from the hub when the model is not in the local cache.
        revision: branch, tag or commit of a hub model. Without it, the revision pinned by the first
            download is used.

    Raises:
        ConfigurationError: unknown task, a bundled model of another task, or a revision for something
            that is not a hub model.
        ModelNotFoundError: nothing of that name.
        DownloadRefusedError: a hub model that is not in the cache, and ``download`` is false.
        ModelIntegrityError: a damaged file, or only pickled weights.
        MissingExtraError: the model must be converted and the extra ``convert`` is not installed.
        ModelError: the hub failed, or the model's files do not describe a model for the task.
    """
    if task not in TASKS:
        raise ConfigurationError(f"task must be one of {sorted(TASKS)}, not {task!r}")
    text = "" if name_or_path is None else os.fspath(name_or_path)
    named = isinstance(name_or_path, str)
    if name_or_path is None or (named and text in load_manifest()):
        if revision is not None:
            raise ConfigurationError("a bundled model has no revision")
        model = bundled(text or TASKS[task])
        if model.record.task != task:
            raise ConfigurationError(
                f"{model.record.name!r} is a model for {model.record.task}, not for {task}"
            )
        return model
    folder = _as_folder(text)
    if folder is not None:
        if revision is not None:
            raise ConfigurationError("a folder has no revision")
        return _resolve_folder(folder, name=folder.name, task=task, source="folder")
    if not named or not hub.is_hub_name(text):
        raise ModelNotFoundError(f"no bundled model, folder or hub model is called {text[:200]!r}")
    found = hub.locate(text, revision=revision, download=download)
    return _resolve_folder(found, name=text, task=task, source="hub")


def _bundle_folder() -> Path:
    return Path(__file__).resolve().parents[1] / "assets" / "models"


@cache
def _load_manifest(folder: Path) -> Mapping[str, ModelRecord]:
    path = folder / "manifest.json"
    if not path.is_file():
        raise ModelIntegrityError(f"the package has no {path.name}; reinstall surefoot")
    models = read_json(path).get("models")
    if not isinstance(models, list):
        raise ModelIntegrityError(f"{path.name} holds no list of models")
    records = [ModelRecord.from_dict(item) for item in models]
    return {record.name: record for record in records}


def _bundled(name: str, folder: Path) -> ResolvedModel:
    record = _load_manifest(folder).get(name)
    if record is None:
        known = ", ".join(_load_manifest(folder)) or "none"
        raise ModelNotFoundError(f"no bundled model is called {name[:200]!r}; bundled: {known}")
    return _from_record(record, folder / name, "bundle")


def _from_record(
    record: ModelRecord, folder: Path, source: Literal["bundle", "folder", "hub"]
) -> ResolvedModel:
    paths = {}
    for item in record.files:
        path = inside(folder, item.path)
        if path is None:
            raise ModelIntegrityError(f"model {record.name!r}: {item.path} is missing")
        size = path.stat().st_size
        if size != item.bytes or hash_file(path) != item.sha256:
            raise ModelIntegrityError(
                f"model {record.name!r}: the sha256 of {item.path} is not the recorded one ({folder})"
            )
        paths[item.path] = path
    model_file = _DEFAULT_MODEL_FILE.get(record.task, "model.onnx")
    for required in (model_file, "tokenizer.json"):
        if required not in paths:
            raise ModelIntegrityError(f"model {record.name!r}: the record lists no {required}")
    return ResolvedModel(
        record=record,
        model_path=paths[model_file],
        tokenizer_path=paths["tokenizer.json"],
        source=source,
        fingerprint=_fingerprint(
            [item.sha256 for item in record.files if item.path not in _NOT_IN_FINGERPRINT]
        ),
        config=read_json(paths["config.json"]) if "config.json" in paths else {},
    )


def _as_folder(text: str) -> Path | None:
    if not text or "\0" in text or len(text) > 4096:
        return None
    try:
        folder = Path(text).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long a name, no home, lone surrogates
        return None


def _resolve_folder(folder: Path, *, name: str, task: str, source: Literal["folder", "hub"]) -> ResolvedModel:
    if inside(folder, RECORD_FILE) is not None:
        record = ModelRecord.from_dict(read_json(folder / RECORD_FILE))
        if record.task != task:
            raise ConfigurationError(f"{name[:200]!r} is a model for {record.task}, not for {task}")
        return _from_record(record, folder, source)
    if inside(folder, "config.json") is None:
        raise ModelNotFoundError(f"{name[:200]!r} holds no config.json: not a model folder")
    model = next((path for path in (inside(folder, item) for item in _ONNX_FILES) if path), None)
    tokenizer = inside(folder, "tokenizer.json")
    if model is None or tokenizer is None:
        if model is None and inside(folder, "model.safetensors") is None:
            _refuse(folder, name)
        converted = _converted(folder, name=name, task=task, model=model)
        return _from_record(ModelRecord.from_dict(read_json(converted / RECORD_FILE)), converted, source)
    config = read_json(folder / "config.json")
    files = [model, tokenizer, *_external_data(model)]
    hashes = [hash_file(path) for path in files]
    record = describe(
        config,
        name=name,
        task=task,
        tokenizer_config=_optional_json(folder, "tokenizer_config.json"),
        files=tuple(
            FileRecord(path.relative_to(folder.resolve()).as_posix(), digest, path.stat().st_size)
            for path, digest in zip(files, hashes, strict=True)
        ),
    )
    return ResolvedModel(record, model, tokenizer, source, _fingerprint(hashes), config)


def _refuse(folder: Path, name: str) -> None:
    """Say why a folder without ONNX and safetensors weights is of no use."""
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    if pickles:
        raise ModelIntegrityError(
            f"{name[:200]!r} has only pickled weights ({', '.join(pickles[:3])}), which can run code when "
            "they are opened; save the model as safetensors"
        )
    raise ModelNotFoundError(f"{name[:200]!r} has neither model.onnx nor model.safetensors")


def _converted(folder: Path, *, name: str, task: str, model: Path | None) -> Path:
    """The cached folder with what :mod:`surefoot.models.convert` made of this checkpoint; made if need be."""
    from surefoot.models import convert

    weights = model or inside(folder, "model.safetensors")
    parts = [hash_file(path) for path in (weights, inside(folder, "config.json")) if path is not None]
    parts += [
        hash_file(path) for path in (inside(folder, item) for item in TOKENIZER_FILES) if path is not None
    ]
    key = hashlib.sha256(" ".join([convert.VERSION, task, *parts]).encode("ascii")).hexdigest()
    target = cache_dir() / "converted" / key
    if not (target / RECORD_FILE).is_file():
        convert.convert_folder(folder, target, name=name, task=task)
    return target


def _external_data(model: Path) -> list[Path]:
    """Weights that an ONNX file keeps beside itself, under the names that exporters use."""
    names = (model.name + "_data", model.name + ".data")
    return [path for path in (inside(model.parent, name) for name in names) if path is not None]


def _optional_json(folder: Path, name: str) -> dict[str, Any]:
    path = inside(folder, name)
    return {} if path is None else read_json(path)


def _fingerprint(hashes: list[str]) -> str:
    return hashlib.sha256(" ".join(hashes).encode("ascii")).hexdigest()
