"""From a Hugging Face checkpoint folder to an ONNX model folder.

Only safetensors are read, no code from the checkpoint runs, and nothing is fetched. BERT goes through
:mod:`surefoot.models.bertgraph` (fused attention, no PyTorch needed); every other architecture is traced by
PyTorch's exporter and then compared with PyTorch on shapes it was not traced with, because a traced
relative-position table (DeBERTa) or mask may silently be fixed to one length.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surefoot.errors import ModelError, ModelIntegrityError, missing_extra
from surefoot.models.bertgraph import bert_graph, can_build
from surefoot.models.int8graph import INT8_FILE, int8_graph
from surefoot.models.int8store import store_int8
from surefoot.models.records import FileRecord, ModelRecord, describe
from surefoot.models.safefiles import hash_file, inside, read_json

__all__ = ["VERSION", "convert_folder", "load_weights", "to_onnx", "tokenizer_json"]

VERSION: Final = "1"
"""Raised when the same checkpoint would give a different model; part of the key of converted models."""

_WEIGHTS = "model.safetensors"
_TRACE_OPSET = 17
_TOLERANCE = 1e-3
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def convert_folder(
    folder: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    name: str,
    task: str,
    int8: bool = False,
) -> ModelRecord:
    """Convert a checkpoint and write a folder that surefoot loads by path.

    Args:
        folder: Hugging Face layout: ``config.json``, ``model.safetensors`` (or an ``onnx/model.onnx`` that
            only lacks ``tokenizer.json``) and the tokenizer's files.
        target: where ``model.onnx``, ``tokenizer.json``, ``config.json`` and ``surefoot.json`` go. Appears
            complete or not at all; when it exists already, it is left as it is.
        name: name for the record.
        task: ``"nli"``, ``"relevance"`` or ``"embed"``.
        int8: store the weights in int8, see :func:`surefoot.models.int8store.store_int8`; a classifier also
            gets ``int8.onnx``, for arithmetic in int8 on request.

    Returns:
        The record, as written to ``surefoot.json``.

    Raises:
        ModelIntegrityError: only pickled weights, or a damaged file.
        ModelError: an architecture that cannot be converted, a head that is missing from the checkpoint.
        MissingExtraError: the extra ``convert`` is not installed.
    """
    source, final = Path(folder), Path(target)
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".convert-") as made:
        work = Path(made) / "model"
        work.mkdir()
        config = read_json(source / "config.json")
        names = ["model.onnx", "tokenizer.json", "config.json"]
        ready = next((p for p in (inside(source, n) for n in ("model.onnx", "onnx/model.onnx")) if p), None)
        if ready is not None and not int8:
            shutil.copyfile(ready, work / "model.onnx")
            parameters = 0
        else:
            model = to_onnx(source, task=task)
            parameters = _count_parameters(model)
            if int8:
                model = store_int8(model)
            data = model.SerializeToString(deterministic=True)
            (work / "model.onnx").write_bytes(data)
            graph = int8_graph(data) if int8 and task != "embed" else None
            if graph is not None:
                (work / INT8_FILE).write_bytes(graph)
                names.append(INT8_FILE)
        (work / "tokenizer.json").write_text(tokenizer_json(source), encoding="utf-8", newline="\n")
        (work / "config.json").write_text(
            json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8"
        )
        tokenizer_config = inside(source, "tokenizer_config.json")
        record = describe(
            config,
            name=name,
            task=task,
            tokenizer_config=read_json(tokenizer_config) if tokenizer_config else None,
            files=tuple(
                FileRecord(item, hash_file(work / item), (work / item).stat().st_size) for item in names
            ),
            parameters=parameters,
        )
        (work / "surefoot.json").write_text(json.dumps(record.to_dict(), indent=2) + "\n", encoding="utf-8")
        try:
            work.rename(final)
        except OSError:
            if not (final / "surefoot.json").is_file():  # otherwise another process was faster
                raise
    return record


def to_onnx(folder: str | os.PathLike[str], *, task: str) -> Any:
    """Convert the weights of a checkpoint.

    Args:
        folder: Hugging Face layout with ``config.json`` and ``model.safetensors``.
        task: ``"nli"`` or ``"relevance"`` for a sequence classifier (output ``logits``), ``"embed"`` for an
            encoder (output ``last_hidden_state``).

    Returns:
        An ``onnx.ModelProto`` with dynamic batch and sequence axes; the same checkpoint gives the same
        bytes. Inputs ``input_ids``, ``attention_mask`` and, where the architecture has segments,
        ``token_type_ids``.

    Raises:
        ModelIntegrityError, ModelError, MissingExtraError: as :func:`convert_folder`.
    """
    source = Path(folder)
    config = read_json(source / "config.json")
    _check_weights(source)
    architecture = str((config.get("architectures") or [""])[0])
    if task == "embed":
        config = {**config, "architectures": ["BertModel"]} if config.get("model_type") == "bert" else config
    elif not architecture.endswith("ForSequenceClassification"):
        raise ModelError(f"{architecture or 'the checkpoint'} is no sequence classifier, which {task} needs")
    if can_build(config):
        return bert_graph(config, load_weights(source / _WEIGHTS))
    return _trace(source, task)


def load_weights(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The floating-point tensors of a safetensors file, as float32.

    Raises:
        ModelIntegrityError: not a safetensors file.
        MissingExtraError: ``safetensors`` is not installed.
    """
    with missing_extra("convert", purpose="read safetensors"):
        import safetensors
    try:
        deserialize: Any = safetensors.deserialize
        tensors = deserialize(path.read_bytes())
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelIntegrityError(f"{path.name} is not a safetensors file") from error
    found: dict[str, npt.NDArray[np.float32]] = {}
    for name, tensor in tensors:
        dtype = _DTYPES.get(tensor["dtype"])
        if dtype is None:  # position ids and the like
            continue
        values = np.frombuffer(tensor["data"], dtype=dtype)
        if tensor["dtype"] == "BF16":  # the upper half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        found[name] = values.astype(np.float32).reshape(tensor["shape"])
    return found


def tokenizer_json(folder: Path) -> str:
    """The tokenizer as one JSON text, without truncation and padding: windows are surefoot's business.

    Raises:
        ModelNotFoundError, ModelIntegrityError: no tokenizer files, or damaged ones.
        MissingExtraError: there is no ``tokenizer.json``, and building one needs the extra ``convert``.
    """
    path = inside(folder, "tokenizer.json")
    if path is not None:
        table = read_json(path, limit=128 << 20)
    else:
        with missing_extra("convert", purpose="build tokenizer.json"):
            from transformers import AutoTokenizer
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            table = json.loads(tokenizer.backend_tokenizer.to_str())
        except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
            raise ModelIntegrityError(f"no tokenizer can be built from {folder.name}") from error
    table["truncation"] = table["padding"] = None
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


def _check_weights(folder: Path) -> None:
    if inside(folder, _WEIGHTS) is not None:
        return
    names = sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".ckpt"))
    if names:
        raise ModelIntegrityError(f"{names[0]} is a pickle, which can run code when opened; need {_WEIGHTS}")
    raise ModelIntegrityError(f"{folder.name} has no {_WEIGHTS}")


def _count_parameters(model: Any) -> int:
    return sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer if tensor.data_type == 1)


def _trace(folder: Path, task: str) -> Any:
    """Export through PyTorch, for architectures that have no graph of their own here."""
    with missing_extra("convert", purpose="convert a model"):
        import onnx
        import torch
        import transformers

    loader = transformers.AutoModel if task == "embed" else transformers.AutoModelForSequenceClassification
    try:
        model, info = loader.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"{folder.name} cannot be loaded: {type(error).__name__}: {error}") from error
    missing = [name for name in info["missing_keys"] if "position_ids" not in name and "pooler" not in name]
    if missing or (task != "embed" and info["missing_keys"]):
        # transformers would go on with random numbers in their place
        raise ModelError(
            f"the checkpoint lacks {len(info['missing_keys'])} tensors, {min(info['missing_keys'])}..."
        )
    model.eval()
    names = _inputs(model.config.to_dict())
    output = "last_hidden_state" if task == "embed" else "logits"

    def forward(_: Any, *tensors: Any) -> Any:
        return getattr(model(**dict(zip(names, tensors, strict=True)), return_dict=True), output)

    positional: Any = type("Positional", (torch.nn.Module,), {"forward": forward})()
    positional.inner = model
    positional.eval()
    shapes = {name: {0: "batch", 1: "sequence"} for name in (*names, output)}
    shapes[output] = {0: "batch"} if output == "logits" else shapes[output]
    with tempfile.TemporaryDirectory() as made, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer's notes on constants; what matters is compared below
        path = Path(made) / "model.onnx"
        torch.onnx.export(
            positional,
            tuple(torch.from_numpy(value) for value in _example(names, 2, 24, model.config).values()),
            str(path),
            input_names=list(names),
            output_names=[output],
            dynamic_axes=shapes,
            opset_version=_TRACE_OPSET,
            dynamo=False,  # a tenth of the time of the newer exporter, and no symbolic shapes to guard
        )
        exported = onnx.load(str(path))
        _compare(path, model, names, output)
    exported.producer_name, exported.producer_version = "surefoot", ""
    exported.doc_string = exported.graph.doc_string = ""
    for node in exported.graph.node:
        node.doc_string = ""
    return exported


def _inputs(config: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("input_ids", "attention_mask", "token_type_ids")
    return names if (config.get("type_vocab_size") or 0) > 1 else names[:2]


def _example(
    names: tuple[str, ...], batch: int, length: int, config: Any
) -> dict[str, npt.NDArray[np.int64]]:
    """Inputs of a shape; the first row is padded to the right by a third."""
    random = np.random.default_rng(length)
    ids = random.integers(0, int(config.vocab_size), (batch, length), dtype=np.int64)
    mask = np.ones_like(ids)
    pad = config.pad_token_id or 0
    ids[ids == pad] = min(pad + 1, int(config.vocab_size) - 1)
    if length > 3:
        ids[0, length * 2 // 3 :] = pad
        mask[0, length * 2 // 3 :] = 0
    segments = np.zeros_like(ids)
    segments[:, length // 2 :] = 1
    every = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
    return {name: every[name] for name in names}


def _compare(path: Path, model: Any, names: tuple[str, ...], output: str) -> None:
    """Run both on shapes that were not traced.

    Raises:
        ModelError: they differ: a shape, a mask or a position table is fixed in the export.
    """
    import onnxruntime
    import torch

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    longest = min(300, int(getattr(model.config, "max_position_embeddings", 300) or 300) - 8)
    for batch, length in ((1, 7), (3, longest), (1, 50)):
        inputs = _example(names, batch, min(length, longest), model.config)
        want = getattr(model(**{k: torch.from_numpy(v) for k, v in inputs.items()}, return_dict=True), output)
        expected = want.numpy()
        try:
            got = session.run([output], inputs)[0]
        except Exception as error:  # ONNX Runtime's own types have no common base
            raise ModelError(f"the export does not run on a batch of {batch} x {length}") from error
        kept = inputs["attention_mask"].astype(bool) if output == "last_hidden_state" else ...
        apart = float(np.abs(got - expected)[kept].max())
        if not apart <= _TOLERANCE * max(1.0, float(np.abs(expected).max())):
            raise ModelError(f"the export differs from the checkpoint by {apart:.2g} on {batch} x {length}")
