"""Export a table of static token vectors and idf weights: the cheap ranker of evidence sentences.

    python training/export_static.py --checkpoint DIR --data TRAIN/*.jsonl.gz [--width 128]

The table is the input word embedding of a sentence embedder, turned onto its main axes and cut after
``--width`` of them. The axes are those of the tokens as they occur, weighted by idf squared (as they enter
the square of a sentence vector), without centring: centring changes the cosines. Figures: README.md here.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from export import update_manifest
from surefoot.models.convert import load_weights, tokenizer_json
from surefoot.models.records import FileRecord, ModelRecord
from surefoot.models.safefiles import hash_file

BREAK = re.compile(r"(?<=[.!?])\s+|\n+")


def sentences(paths: list[Path], most: int) -> list[str]:
    """Up to ``most`` sentences of distinct premises from each file, at most 40 a premise."""
    found: list[str] = []
    for path in sorted(paths):
        seen: set[str] = set()
        here: list[str] = []
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in stream:
                premise = json.loads(line).get("premise")
                if not isinstance(premise, str) or premise in seen:
                    continue
                seen.add(premise)
                here += [part[:2000] for part in BREAK.split(premise)[:40] if len(part) > 10]
                if len(here) >= most:
                    break
        found += here[:most]
    return found


def document_frequency(tokenizer: Tokenizer, texts: list[str], size: int) -> np.ndarray:
    """In how many texts each token occurs, shape (vocabulary,)."""
    counts = np.zeros(size)
    for start in range(0, len(texts), 4096):
        for encoding in tokenizer.encode_batch(texts[start : start + 4096], add_special_tokens=False):
            counts[list(set(encoding.ids))] += 1
    return counts


def main_axes(table: np.ndarray, weight: np.ndarray, width: int) -> np.ndarray:
    """Columns of an orthonormal (old width, width) matrix; an axis has no sign, so one is chosen."""
    second_moment = (table * weight[:, None]).T @ table
    axes = np.linalg.eigh(second_moment)[1][:, ::-1][:, :width]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(width)])
    return axes * signs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of the sentence embedder")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="gzipped JSON lines, `premise`")
    parser.add_argument("--name", default="static")
    parser.add_argument("--out", type=Path, default=Path("src/surefoot/assets/models"))
    parser.add_argument("--card", type=Path, help="JSON with license and provenance")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--most", type=int, default=15_000, help="most sentences from one file")
    options = parser.parse_args()

    weights = load_weights(options.checkpoint / "model.safetensors")
    table = next(value for key, value in weights.items() if key.endswith("word_embeddings.weight"))
    text = tokenizer_json(options.checkpoint)
    texts = sentences(options.data, options.most)
    counts = document_frequency(Tokenizer.from_str(text), texts, len(table))
    idf = np.log((len(texts) + 1) / (counts + 1)) + 1
    narrow = table.astype(np.float64)
    narrow = narrow @ main_axes(narrow, counts / counts.sum() * idf**2, options.width)
    scale = (np.abs(narrow).max(axis=1) / 127).astype(np.float16)
    scale[scale == 0] = 1
    values = np.clip(np.rint(narrow / scale.astype(np.float64)[:, None]), -127, 127).astype(np.int8)

    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        made = Path(folder) / options.name
        made.mkdir()
        np.save(made / "table.npy", values, allow_pickle=False)
        np.save(made / "scale.npy", scale, allow_pickle=False)
        np.save(made / "idf.npy", idf.astype(np.float16), allow_pickle=False)
        (made / "tokenizer.json").write_text(text, encoding="utf-8", newline="\n")
        record = ModelRecord(
            name=options.name,
            task="static",
            files=tuple(
                FileRecord(name, hash_file(made / name), (made / name).stat().st_size)
                for name in ("table.npy", "scale.npy", "idf.npy", "tokenizer.json")
            ),
            architecture="token table",
            parameters=int(values.size),
            max_length=512,
            labels=(),
            export={
                "int8": True,
                "width": options.width,
                "width_before": int(table.shape[1]),
                "idf": f"ln((n + 1) / (df + 1)) + 1 over n = {len(texts)} sentences",
                "tools": {name: version(name) for name in ("numpy", "tokenizers")},
            },
        )
        entry = record.to_dict()
        if options.card:
            entry |= json.loads(options.card.read_text("utf-8"))
        ModelRecord.from_dict(entry)
        target = options.out / options.name
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    update_manifest(options.out, entry, keep_calibration=False)
    print(json.dumps(entry, indent=2))


if __name__ == "__main__":
    main()
