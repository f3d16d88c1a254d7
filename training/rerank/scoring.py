"""Logits of (query, passage) pairs, from a checkpoint or from an exported ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from training.rerank.first_stage import device_of
from training.rerank.train import encode_pairs, load_model, pad

from surefoot.inference.text import TextEncoder
from surefoot.models.int8store import SESSION_CONFIG
from surefoot.rerank.windows import split

__all__ = ["Scorer"]

_BATCH_TOKENS = 4096


class Scorer:
    """A cross-encoder ready to score.

    Args:
        folder: with ``model.onnx`` (scored by ONNX Runtime) or a Hugging Face checkpoint (by PyTorch).
        device: for a checkpoint: ``auto``, ``cpu`` or ``cuda``.
        threads: for ONNX Runtime.
        length: most tokens of a pair.
        windows: score a longer passage by its best window, as surefoot does, instead of cutting it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str = "auto",
        threads: int = 1,
        length: int = 256,
        windows: bool = False,
    ) -> None:
        self._encoder = TextEncoder(folder / "tokenizer.json") if windows else None
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._length = length
        self._device = device_of(device)
        self._run: Callable[[dict[str, torch.Tensor]], npt.NDArray[np.float32]]
        if (folder / "model.onnx").is_file():
            self._device = torch.device("cpu")
            self._run = _onnx(folder / "model.onnx", threads)
        else:
            model = load_model(folder).to(self._device).eval()
            self._run = lambda inputs: model(**inputs).logits[:, 0].float().cpu().numpy()

    @torch.inference_mode()
    def logits(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """One logit per pair, in the order of the pairs."""
        if self._encoder is None:
            return self._plain(pairs)
        parts: list[tuple[str, str]] = []
        owner: list[int] = []
        for index, (query, passage) in enumerate(pairs):
            room = max(self._length - 3 - len(self._encoder.encode([query])[0].ids), self._length // 4)
            spans = list(split(passage, self._encoder, room)) or [None]
            parts += [(query, passage if span is None else passage[span.start : span.end]) for span in spans]
            owner += [index] * len(spans)
        made = np.full(len(pairs), -np.inf, np.float32)
        np.maximum.at(made, owner, self._plain(parts))
        return made

    def _plain(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        encodings = encode_pairs(self._tokenizer, pairs, self._length)
        order = sorted(range(len(pairs)), key=lambda i: -len(encodings[i].ids))
        made = np.zeros(len(pairs), np.float32)
        start = 0
        while start < len(order):
            count = max(1, _BATCH_TOKENS // len(encodings[order[start]].ids))
            rows = order[start : start + count]
            made[rows] = self._run(pad([encodings[i] for i in rows], self._device))
            start += count
        return made


def _onnx(path: Path, threads: int) -> Callable[[dict[str, torch.Tensor]], npt.NDArray[np.float32]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    for key, value in SESSION_CONFIG.items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(inputs: dict[str, torch.Tensor]) -> npt.NDArray[np.float32]:
        made = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
        return np.asarray(made[:, 0], np.float32)

    return run
