"""Turn a bundled classifier back into a checkpoint, to continue training it or to run it in PyTorch.

    python training/restore.py --model src/surefoot/assets/models/verify --out CHECKPOINT

The repository holds the weights that ship, not the checkpoints they came from. They were rounded to int8 at
export, so the checkpoint gives the logits of the bundled model.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

__all__ = ["main", "restore"]


def restore(model: Path, out: Path) -> dict[str, np.ndarray]:
    """Write the checkpoint folder ``out``, which must not exist, and return its tensors.

    Args:
        model: folder with ``model.onnx``, ``config.json`` and ``tokenizer.json``.
        out: gets ``model.safetensors`` in float32, and ``run.json`` with what training has cost so far if the
            manifest gives it in numbers.
    """
    out.mkdir(parents=True)
    tensors = _tensors(onnx.load(model / "model.onnx"))
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(model / name, out / name)
    if cost := _cost(model.resolve()):
        (out / "run.json").write_text(json.dumps(cost) + "\n", encoding="utf-8")
    return tensors


def _tensors(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Weights in float32 under Hugging Face's names, of a graph from ``surefoot.models.bertgraph``."""
    stored = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    found: dict[str, np.ndarray] = {}
    for name, value in stored.items():
        if name.endswith(".int8"):
            name = name.removesuffix(".int8")
            value = value.astype(np.float32) * stored[f"{name}.scale"]
        if value.dtype == np.float32 and not name.endswith(".scale"):  # not positions and the like
            found |= _named(name, value)
    return {
        name if name.startswith("classifier") else f"bert.{name}": np.ascontiguousarray(value, np.float32)
        for name, value in found.items()
    }


def _named(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """The graph multiplies from the right and joins query, key and value; a checkpoint does neither."""
    matrix = name.endswith(".weight") and value.ndim == 2 and "embeddings" not in name
    if ".qkv." not in name:
        return {name: value.T if matrix else value}
    return {
        name.replace("attention.qkv", f"attention.self.{part}"): piece.T if matrix else piece
        for part, piece in zip(("query", "key", "value"), np.split(value, 3, axis=-1), strict=True)
    }


def _cost(model: Path) -> dict[str, float]:
    """The training cost in the manifest beside the model, if it is given in numbers."""
    manifest = model.parent / "manifest.json"
    entries = json.loads(manifest.read_text("utf-8"))["models"] if manifest.is_file() else []
    cost = next((e["provenance"].get("training_cost", "") for e in entries if e["name"] == model.name), "")
    found = re.fullmatch(r"([\d.]+) CPU minutes, (\d+) tokens, (\d+) steps", cost)
    return {"cpu_minutes": float(found[1]), "tokens": int(found[2]), "step": int(found[3])} if found else {}


def main() -> None:
    """Restore one model from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of a bundled model")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; must not exist")
    options = parser.parse_args()
    tensors = restore(options.model, options.out)
    count = sum(value.size for value in tensors.values())
    print(json.dumps({"tensors": len(tensors), "parameters": count}))


if __name__ == "__main__":
    main()
