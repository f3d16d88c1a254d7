"""Turn a trained checkpoint into a bundled model, and rewrite its entry in the manifest.

    python training/export.py --checkpoint DIR --task nli --name verify --out src/surefoot/assets/models \
        [--card card.json] [--data pairs.jsonl.gz ...] [--keep-calibration]

The card is a JSON object with ``license``, ``provenance`` and, once fitted, ``calibration``. Pairs are JSON
lines with ``premise`` and ``claim`` (or ``query`` and ``passage``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from surefoot.models.convert import convert_folder, to_onnx
from surefoot.models.int8store import SESSION_CONFIG
from surefoot.models.records import ModelRecord

BUILT_IN = [
    ("The library opens at nine and closes at six on weekdays.", "The library is open at noon on Tuesday."),
    ("The library opens at nine and closes at six on weekdays.", "The library is closed all day on Tuesday."),
    ("Revenue rose from 120 to 150 million euros in 2021.", "Revenue fell in 2021."),
    ("Revenue rose from 120 to 150 million euros in 2021.", "The company has offices in Lyon."),
    ("A man in a red coat is walking his dog along the river.", "Somebody is outdoors with an animal."),
    ("Returns are accepted within 30 days of delivery.", "Customers may send goods back for a month."),
]


def read_pairs(paths: list[Path], most: int) -> list[tuple[str, str]]:
    """Up to ``most`` pairs, the same number from each file, at even distances."""
    pairs: list[tuple[str, str]] = []
    for path in paths:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
        found = [
            (first, second)
            for row in rows
            if isinstance(first := row.get("premise", row.get("query")), str)
            and isinstance(second := row.get("claim", row.get("hypothesis", row.get("passage"))), str)
        ]
        share = max(1, most // len(paths))
        pairs += found[:: max(1, len(found) // share)][:share]
    return pairs or BUILT_IN


def scores(model: bytes, tokenizer: Tokenizer, pairs: list[tuple[str, str]], length: int) -> np.ndarray:
    """First output of every pair, one pair a batch; hidden states are averaged."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    for key, value in SESSION_CONFIG.items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    wanted = {item.name for item in session.get_inputs()}
    tokenizer.enable_truncation(length, strategy="only_first")
    rows = []
    for pair in pairs:
        encoding = tokenizer.encode(*pair)
        inputs = {
            "input_ids": np.array([encoding.ids], np.int64),
            "attention_mask": np.array([encoding.attention_mask], np.int64),
            "token_type_ids": np.array([encoding.type_ids], np.int64),
        }
        output = session.run(None, {key: value for key, value in inputs.items() if key in wanted})[0]
        rows.append(output[0] if output.ndim == 2 else output[0].mean(axis=0))
    return np.stack(rows)


def loss(checkpoint: Path, made: Path, record: ModelRecord, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """What storing in int8 cost, in the model's own output."""
    tokenizer = Tokenizer.from_file(str(made / "tokenizer.json"))
    exact = scores(
        to_onnx(checkpoint, task=record.task).SerializeToString(), tokenizer, pairs, record.max_length
    )
    stored = scores((made / "model.onnx").read_bytes(), tokenizer, pairs, record.max_length)
    apart = np.abs(exact - stored)
    figures: dict[str, Any] = {
        "pairs": len(pairs),
        "max_abs_difference": round(float(apart.max()), 5),
        "mean_abs_difference": round(float(apart.mean()), 5),
        "standard_deviation": round(float(exact.std()), 4),
        "correlation": round(float(np.corrcoef(exact.ravel(), stored.ravel())[0, 1]), 6),
    }
    if record.task == "nli":
        figures["argmax_agreement"] = round(float((exact.argmax(1) == stored.argmax(1)).mean()), 5)
    return figures


def update_manifest(folder: Path, record: dict[str, Any], *, keep_calibration: bool) -> None:
    """Replace or append the entry; the others stay as they are."""
    path = folder / "manifest.json"
    models = json.loads(path.read_text("utf-8"))["models"] if path.is_file() else []
    names = [model["name"] for model in models]
    if record["name"] in names:
        old = models[names.index(record["name"])]
        if keep_calibration and "calibration" in old:
            record["calibration"] = old["calibration"]
        models[names.index(record["name"])] = record
    else:
        models.append(record)
    path.write_text(json.dumps({"models": models}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--task", choices=["nli", "relevance", "embed"], required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--out", type=Path, default=Path("src/surefoot/assets/models"))
    parser.add_argument("--card", type=Path, help="JSON with license, provenance and calibration")
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="pairs for the loss figures")
    parser.add_argument("--most", type=int, default=300, help="most pairs to compare on")
    parser.add_argument("--keep-calibration", action="store_true", help="keep that of the old entry")
    options = parser.parse_args()

    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        made = Path(folder) / options.name
        record = convert_folder(options.checkpoint, made, name=options.name, task=options.task, int8=True)
        figures = loss(options.checkpoint, made, record, read_pairs(options.data, options.most))
        entry = record.to_dict()
        if options.card:
            entry |= json.loads(options.card.read_text("utf-8"))
        tools = {name: version(name) for name in ("onnx", "onnxruntime", "tokenizers")}
        entry["export"] = {"int8": True, "int8_against_float32": figures, "tools": tools}
        ModelRecord.from_dict(entry)
        (made / "surefoot.json").unlink()  # in the package the manifest is the record
        target = options.out / options.name
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    update_manifest(options.out, entry, keep_calibration=options.keep_calibration)
    print(json.dumps(entry, indent=2))


if __name__ == "__main__":
    main()
