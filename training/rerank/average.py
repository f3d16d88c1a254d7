"""The mean of the weights of several runs that started from one checkpoint (Wortsman et al. 2022)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import save_file
from training.soup import mean_weights

__all__ = ["average"]


def average(folders: Sequence[Path], out: Path) -> None:
    """Write a checkpoint with the mean of the weights of ``folders``; the costs in ``run.json`` add up.

    Raises:
        ValueError: the checkpoints do not have the same weights.
    """
    mean = mean_weights(folders)
    out.mkdir(parents=True, exist_ok=True)
    for path in folders[0].iterdir():
        if path.is_file() and path.name not in ("model.safetensors", "state.pt", "run.json"):
            shutil.copyfile(path, out / path.name)
    save_file(mean, out / "model.safetensors", metadata={"format": "pt"})
    runs = [json.loads((folder / "run.json").read_text("utf-8")) for folder in folders]
    total = {key: round(sum(run[key] for run in runs), 1) for key in ("step", "cpu_minutes", "tokens")}
    note = total | {"average_of": runs}
    if "after" in runs[0]:
        note["after"] = runs[0]["after"]
    (out / "run.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
