"""From the chosen checkpoint to the bundled model, through the exporter that all models share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from training.export import update_manifest
from training.rerank.features import Lists
from training.rerank.fusion import Weights, ranked
from training.rerank.ranking import ndcg

from surefoot.models.convert import convert_folder
from surefoot.models.records import ModelRecord

__all__ = ["ship"]


def ship(
    checkpoint: Path,
    out: Path,
    name: str,
    card: Mapping[str, Any],
    lists: Mapping[str, Sequence[Lists]],
    *,
    score: Callable[[Path, Sequence[Lists]], None],
) -> dict[str, Any]:
    """Write ``out/name`` and its entry in ``out/manifest.json``.

    Args:
        checkpoint: Hugging Face folder.
        out: folder of the bundled models.
        name: of this one.
        card: fields of the entry that the checkpoint does not know.
        lists: the same candidate lists twice, as ``"float32"`` and ``"int8"``, to be scored by either.
        score: fills in the logits of lists by the model in a folder.

    Returns:
        The entry.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        made = Path(folder) / name
        record = convert_folder(checkpoint, made, name=name, task="relevance", int8=True)
        score(checkpoint, lists["float32"])
        score(made, lists["int8"])
        fused = card.get("fusion")
        weights = (
            Weights(**{key: fused[key] for key in ("logit", "cosine", "lexical")}) if fused else Weights()
        )
        tools = {tool: version(tool) for tool in ("onnx", "onnxruntime", "tokenizers")}
        entry = record.to_dict() | dict(card)
        entry["export"] = {"int8": True, "int8_against_float32": _loss(lists, weights), "tools": tools}
        entry = ModelRecord.from_dict(entry).to_dict()
        (made / "surefoot.json").unlink()  # in the package the manifest is the record
        target = out / name
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    update_manifest(out, entry, keep_calibration=False)
    return entry


def _loss(lists: Mapping[str, Sequence[Lists]], weights: Weights) -> dict[str, Any]:
    exact, stored = (np.concatenate([item.logit for item in lists[kind]]) for kind in ("float32", "int8"))
    apart = np.abs(exact - stored)
    figures: dict[str, Any] = {
        "pairs": len(exact),
        "max_abs_difference": round(float(apart.max()), 5),
        "mean_abs_difference": round(float(apart.mean()), 5),
        "standard_deviation": round(float(exact.std()), 4),
        "correlation": round(float(np.corrcoef(exact, stored)[0, 1]), 6),
    }
    for label, used in (("logit", Weights()), ("used", weights)):
        for kind in ("float32", "int8"):
            values = [ndcg(ranked(used.score(item), item), item.gains) for item in lists[kind]]
            figures[f"ndcg_{label}_{kind}"] = round(float(np.mean(values)), 4)
    return figures
