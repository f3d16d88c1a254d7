"""Bundled weights become a checkpoint again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("safetensors")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from training import restore

from surefoot.inference.pairs import PairModel
from surefoot.models.convert import convert_folder
from surefoot.models.manifest import bundled

PAIRS = [
    ("The library opens at nine and closes at six.", "The library is open at noon."),
    ("Returns are accepted within 30 days of delivery. " * 12, "Customers may send goods back for a month."),
]


@pytest.mark.parametrize(("name", "task"), [("verify", "nli"), ("rerank", "relevance")])
def test_a_restored_checkpoint_converts_to_the_same_scores(name, task, tmp_path, monkeypatch, capsys):
    found = bundled(name)
    out = tmp_path / "checkpoint"
    arguments = ["restore.py", "--model", str(found.model_path.parent), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    restore.main()
    assert json.loads(capsys.readouterr().out)["parameters"] == found.record.parameters

    assert (out / "run.json").exists() == (name == "rerank"), "the verifier's cost is told in words"
    if name == "rerank":
        cost = json.loads((out / "run.json").read_text("utf-8"))
        recorded = found.record.provenance["training_cost"]
        assert recorded == f"{cost['cpu_minutes']} CPU minutes, {cost['tokens']} tokens, {cost['step']} steps"

    made = tmp_path / "made"
    convert_folder(out, made, name=name, task=task, int8=False)
    expected, again = (
        PairModel(path, found.tokenizer_path, fingerprint=str(path)).logits(PAIRS)
        for path in (found.model_path, made / "model.onnx")
    )
    assert np.abs(again - expected).max() < 1e-5
    with pytest.raises(FileExistsError):
        restore.main()
