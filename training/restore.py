"""Turn a bundled classifier back into a checkpoint, to go on training from what ships.

    python training/restore.py --model src/surefoot/assets/models/verify --out CHECKPOINT

Checkpoints are not kept in the repository; the weights that ship are. They were rounded to int8 on export,
so the checkpoint is the rounded network, not the one that was trained: its logits are those of the bundled
model.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

__all__ = ["main", "tensors_of"]


def tensors_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Weights in float32 under Hugging Face's names, of a graph from ``surefoot.models.bertgraph``."""
    stored = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    found: dict[str, np.ndarray] = {}
    for name, value in stored.items():
        if name.endswith(".scale"):
            continue
        if name.endswith(".int8"):
            name = name.removesuffix(".int8")
            value = value.astype(np.float32) * stored[f"{name}.scale"]
        elif value.dtype != np.float32:
            continue  # positions and the like
        found |= _named(name, value)
    return {f"bert.{n}" if not n.startswith("classifier") else n: _solid(v) for n, v in found.items()}


def _solid(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value, dtype=np.float32)


def _named(name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """The graph multiplies from the right and joins query, key and value; a checkpoint does neither."""
    matrix = name.endswith(".weight") and value.ndim == 2 and "embeddings" not in name
    if ".qkv." not in name:
        return {name: value.T if matrix else value}
    parts = np.split(value, 3, axis=-1)
    return {
        name.replace("attention.qkv", f"attention.self.{part}"): piece.T if matrix else piece
        for part, piece in zip(("query", "key", "value"), parts, strict=True)
    }


def cost_of(model: Path) -> dict[str, float]:
    """What its training cost by the manifest beside it, for the ``run.json`` that the next run adds to."""
    manifest = model.parent / "manifest.json"
    if not manifest.is_file():
        return {}
    entries = json.loads(manifest.read_text("utf-8"))["models"]
    cost = next((e["provenance"].get("training_cost", "") for e in entries if e["name"] == model.name), "")
    found = re.fullmatch(r"([\d.]+) CPU minutes, (\d+) tokens, (\d+) steps", cost)
    return {"cpu_minutes": float(found[1]), "tokens": int(found[2]), "step": int(found[3])} if found else {}


def main() -> None:
    """Read a model folder, write a checkpoint folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--model", type=Path, required=True, help="folder with model.onnx, config.json and tokenizer.json"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write; must not exist")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    tensors = tensors_of(onnx.load(options.model / "model.onnx"))
    save_file(tensors, options.out / "model.safetensors", metadata={"format": "pt"})
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(options.model / name, options.out / name)
    if cost := cost_of(options.model.resolve()):
        (options.out / "run.json").write_text(json.dumps(cost) + "\n", encoding="utf-8")
    else:
        print("what it cost until now is not known as numbers; add it by hand", file=sys.stderr)
    count = sum(value.size for value in tensors.values())
    print(json.dumps({"tensors": len(tensors), "parameters": count}))


if __name__ == "__main__":
    main()
