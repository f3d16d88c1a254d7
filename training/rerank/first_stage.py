"""The two retrievers that the reranker is trained against and measured with: BM25 and the embedder.

BM25 (Robertson & Zaragoza 2009) is that of ``bm25s`` with its defaults (k1 1.5, b 0.75, Lucene's idf),
English stop words and Porter2 stems. The embedder is the base model as published: mean of the last layer's
vectors, 256 tokens, cosine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import numpy.typing as npt
import Stemmer
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

__all__ = ["BM25", "Embedder", "device_of", "top"]

Floats = npt.NDArray[np.float32]
_BATCH_TOKENS = 4096


def device_of(name: str) -> torch.device:
    """``auto`` is the GPU where there is one, and the CPU otherwise."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def top(scores: Floats, count: int) -> npt.NDArray[np.int64]:
    """Positions of the ``count`` highest scores, highest first, ties in order."""
    return np.argsort(-scores, kind="stable")[:count]


class BM25:
    """Scores of a query against every passage of a corpus."""

    def __init__(self, passages: Sequence[str]) -> None:
        self._stem = Stemmer.Stemmer("english")
        self._index = bm25s.BM25()
        self._index.index(self._words(list(passages)), show_progress=False)
        self._size = len(passages)

    def _words(self, texts: list[str]) -> list[list[str]]:
        words: list[list[str]] = bm25s.tokenize(
            texts, stopwords="en", stemmer=self._stem, return_ids=False, show_progress=False
        )
        return words

    def scores(self, query: str) -> Floats:
        """One score per passage, 0 where no word is shared."""
        words = self._words([query])[0]
        if not words:
            return np.zeros(self._size, np.float32)
        return np.asarray(self._index.get_scores(words), np.float32)


class Embedder:
    """Unit vectors of texts by a sentence-embedding checkpoint; kept on disk where ``cache`` is given."""

    def __init__(
        self, folder: Path, *, cache: Path | None = None, device: str = "auto", length: int = 256
    ) -> None:
        self._device = device_of(device)
        self._model = AutoModel.from_pretrained(folder).to(self._device).eval()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(length)
        self._cache = cache
        self._salt = f"{folder.name}:{length}:"

    def encode(self, texts: Sequence[str]) -> Floats:
        """Vectors of unit length, shape (texts, width)."""
        key = hashlib.sha256((self._salt + "\0".join(texts)).encode("utf-8", "surrogatepass")).hexdigest()[
            :24
        ]
        path = None if self._cache is None else self._cache / f"{key}.npy"
        if path is not None and path.is_file():
            return np.load(path, allow_pickle=False).astype(np.float32)
        made = self._encode(texts)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, made.astype(np.float16))
        return made

    @torch.inference_mode()
    def _encode(self, texts: Sequence[str]) -> Floats:
        encodings = self._tokenizer.encode_batch(list(texts))
        made = np.zeros((len(texts), self._model.config.hidden_size), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(encodings[i].ids))
        start = 0
        while start < len(order):
            longest, end = 0, start
            while end < len(order):
                longest = max(longest, len(encodings[order[end]].ids))
                if end > start and longest * (end - start + 1) > _BATCH_TOKENS:
                    break
                end += 1
            rows = order[start:end]
            width = max(len(encodings[i].ids) for i in rows)
            ids = torch.zeros((len(rows), width), dtype=torch.long)
            mask = torch.zeros((len(rows), width), dtype=torch.long)
            for row, i in enumerate(rows):
                ids[row, : len(encodings[i].ids)] = torch.tensor(encodings[i].ids)
                mask[row, : len(encodings[i].ids)] = 1
            ids, mask = ids.to(self._device), mask.to(self._device)
            hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask[..., None].float()
            vectors = (hidden * weights).sum(1) / weights.sum(1)
            made[rows] = torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()
            start = end
        return made
