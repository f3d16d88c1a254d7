"""Turn a sentence-transformers checkpoint into the bundled model ``embed``, and rewrite its manifest entry.

    python training/export_embed.py --checkpoint DIR --card training/cards/embed.json \
        --data DIR/*.corpus.jsonl.gz

The checkpoint must pool by the mean, as all-MiniLM-L6-v2 does; its ``sentence_bert_config.json`` says how
many tokens it reads. Data are JSON lines with ``text`` (or ``passage``): the texts on which the vectors of
the file, weights in int8, are compared with those of the float32 weights.
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

from surefoot.inference.embedding import Embedder
from surefoot.models.convert import convert_folder
from surefoot.models.records import ModelRecord

NAME = "embed"


def read_texts(paths: list[Path], most: int) -> list[str]:
    """Up to ``most`` texts, the same number from each file, at even distances."""
    texts: list[str] = []
    for path in paths:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as stream:
            found = [row.get("text", row.get("passage")) for row in map(json.loads, stream)]
        share = max(1, most // len(paths))
        texts += [text for text in found if text][:: max(1, len(found) // share)][:share]
    return texts


def loss(checkpoint: Path, made: Path, texts: list[str], work: Path, max_length: int) -> dict[str, Any]:
    """What storing in int8 cost, in cosines: of the two vectors of a text, and of pairs of texts."""
    exact_folder = work / "float32"
    convert_folder(checkpoint, exact_folder, name=NAME, task="embed", int8=False)
    exact, stored = (
        Embedder(folder, pooling="mean", max_length=max_length).embed(texts)
        for folder in (exact_folder, made)
    )
    same = np.einsum("ij,ij->i", exact.astype(np.float64), stored.astype(np.float64))
    pairs = np.triu_indices(len(texts), 1)
    apart = np.abs((exact @ exact.T)[pairs] - (stored @ stored.T)[pairs])
    return {
        "texts": len(texts),
        "mean_cosine": round(float(same.mean()), 6),
        "min_cosine": round(float(same.min()), 6),
        "mean_abs_difference_of_cosines": round(float(apart.mean()), 6),
        "max_abs_difference_of_cosines": round(float(apart.max()), 6),
    }


def check(checkpoint: Path) -> int:
    """Tokens that the checkpoint reads.

    Raises:
        SystemExit: it does not pool by the mean, so that the bundled defaults would be wrong for it.
    """
    pooling = json.loads((checkpoint / "1_Pooling" / "config.json").read_text("utf-8"))
    if [key for key, value in pooling.items() if key.startswith("pooling_mode") and value] != [
        "pooling_mode_mean_tokens"
    ]:
        raise SystemExit(f"{checkpoint} does not pool by the mean")
    length = json.loads((checkpoint / "sentence_bert_config.json").read_text("utf-8"))["max_seq_length"]
    return int(length)


def update_manifest(folder: Path, entry: dict[str, Any]) -> None:
    """Replace or append the entry; the others stay as they are."""
    path = folder / "manifest.json"
    models = json.loads(path.read_text("utf-8"))["models"]
    places = [index for index, model in enumerate(models) if model["name"] == NAME]
    if places:
        models[places[0]] = entry
    else:
        models.append(entry)
    path.write_text(json.dumps({"models": models}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("src/surefoot/assets/models"))
    parser.add_argument("--card", type=Path, required=True, help="JSON with license and provenance")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="texts for the loss figures")
    parser.add_argument("--most", type=int, default=300, help="most texts to compare on")
    options = parser.parse_args()

    max_length = check(options.checkpoint)
    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        work = Path(folder)
        made = work / NAME
        record = convert_folder(options.checkpoint, made, name=NAME, task="embed", int8=True)
        texts = read_texts(options.data, options.most)
        figures = loss(options.checkpoint, made, texts, work, max_length)
        entry = record.to_dict() | {"max_length": max_length} | json.loads(options.card.read_text("utf-8"))
        tools = {name: version(name) for name in ("onnx", "onnxruntime", "tokenizers")}
        entry["export"] = {
            "int8": True,
            "pooling": "mean",
            "int8_against_float32": figures,
            **entry.get("export", {}),
            "tools": tools,
        }
        ModelRecord.from_dict(entry)
        (made / "surefoot.json").unlink()  # in the package the manifest is the record
        target = options.out / NAME
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    update_manifest(options.out, entry)
    print(json.dumps(entry, indent=2))


if __name__ == "__main__":
    main()
