"""The bi-encoder: a text becomes one unit vector, and vectors of texts about the same thing lie close.

Mean pooling over token vectors and L2 normalisation as in Reimers & Gurevych 2019, "Sentence-BERT". A text
gets
the same bits whatever it is embedded with: it is padded by its own length, computed by one thread, and pooled
alone (see :mod:`surefoot.inference.pairs`).
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from surefoot.errors import ConfigurationError, InputError, ModelError, ModelIntegrityError

# Sessions and runs of equal length are the same for one text as for a pair of them.
from surefoot.inference.pairs import equal_length_runs
from surefoot.inference.session import available_threads, open_session
from surefoot.inference.text import clean
from surefoot.models.manifest import ResolvedModel, resolve_model
from surefoot.models.safefiles import inside, read_json

__all__ = ["Embedder", "Pooling"]

Pooling = Literal["mean", "cls"]
Vectors = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]

_SLICE: Final = 512
"""Texts tokenised at a time: memory stays bounded, and runs of equal length are long enough."""

_POOLING_FILE: Final = "1_Pooling/config.json"
_POOLING_MODES: Final[dict[str, Pooling]] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Loaded:
    """A model in memory."""

    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    dimension: int


@dataclass(frozen=True, slots=True)
class _Window:
    """Token ids that go through the model at once: a whole text, or one of its equal parts."""

    text: int
    ids: list[int]


_loaded: dict[str, _Loaded] = {}
_loading = threading.Lock()


class Embedder:
    """Texts in, unit vectors out.

    The model is loaded at the first call (or by :meth:`load`), once per process, and may be used from many
    threads at once. A text longer than the model is read in windows of equal length whose vectors are
    averaged before the normalisation, so that every token counts the same; nothing is cut.

    Args:
        model: ``None`` for the bundled model (English, 384 dimensions); else a folder or a Hugging Face name
            of a BERT-like encoder.
        pooling: ``"mean"`` of the token vectors or the vector of the first token (``"cls"``); by default what
            the model's folder says.
        max_length: tokens of a window, special tokens included; by default, and at most, what the model
            reads.
        query_prefix, passage_prefix: put before each query or passage, as some models want (``"query: "``).
        threads: runs computed at a time; every available core by default.
        download: allow one download of a Hugging Face model that is not on this machine yet.
        revision: commit, tag or branch of a Hugging Face model.

    Raises:
        ConfigurationError: an option is out of range.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        pooling: Pooling | None = None,
        max_length: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        threads: int | None = None,
        download: bool = False,
        revision: str | None = None,
    ) -> None:
        if pooling not in (None, "mean", "cls"):
            raise ConfigurationError(f"pooling must be 'mean' or 'cls', not {pooling!r}")
        for name, value, least in (("max_length", max_length, 8), ("threads", threads, 1)):
            if value is not None and value < least:
                raise ConfigurationError(f"{name} must be at least {least}, not {value}")
        self._name = model
        self._pooling = pooling
        self._max_length = max_length
        self._prefixes = (passage_prefix, query_prefix)
        self._threads = available_threads() if threads is None else threads
        self._download, self._revision = download, revision
        self._lock = threading.Lock()
        self._ready: tuple[ResolvedModel, _Loaded, Pooling, int] | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._ready is not None

    @property
    def name(self) -> str:
        """Name of the model. Loads it."""
        return self._load()[0].record.name

    @property
    def dimension(self) -> int:
        """Length of a vector. Loads the model."""
        return self._load()[1].dimension

    @property
    def settings(self) -> dict[str, str | int]:
        """What the vectors depend on: two embedders of equal settings give equal vectors. Loads the model."""
        resolved, loaded, pooling, length = self._load()
        return {
            "fingerprint": resolved.fingerprint,
            "dimension": loaded.dimension,
            "pooling": pooling,
            "max_length": length,
            "query_prefix": self._prefixes[1],
            "passage_prefix": self._prefixes[0],
        }

    def load(self) -> None:
        """Load the model now rather than at the first call.

        Raises:
            ModelError: it cannot be found, is damaged, or is no encoder.
            ConfigurationError: neither the caller nor the model's folder says how to pool.
            MissingExtraError: it has to be converted first, and the extra ``convert`` is not installed.
        """
        self._load()

    def embed(
        self, texts: Iterable[str], *, query: bool = False, progress: Progress | None = None
    ) -> Vectors:
        """Embed texts; equal ones are computed once.

        Args:
            texts: any strings. An empty one has a vector too: that of the special tokens.
            query: they are queries, not passages; matters only where the two have different prefixes.
            progress: called with (texts done, texts to do).

        Returns:
            float32 array of shape (number of texts, dimension); each row has the L2 norm 1.

        Raises:
            InputError: an item is no string; its position is named.
            ModelError: as :meth:`load`, or the model returns numbers that are not finite.
            ConfigurationError, MissingExtraError: as :meth:`load`.
        """
        given = _strings(texts)
        _, loaded, _, _ = self._load()
        prefix = self._prefixes[query]
        distinct = {text: row for row, text in enumerate(dict.fromkeys(given))}
        vectors = np.empty((len(distinct), loaded.dimension), dtype=np.float32)
        every = list(distinct)
        for start in range(0, len(every), _SLICE):
            part = [prefix + text if prefix else text for text in every[start : start + _SLICE]]
            vectors[start : start + len(part)] = self._embed(part)
            if progress is not None:
                progress(start + len(part), len(every))
        return vectors[[distinct[text] for text in given]] if given else vectors

    def _embed(self, texts: Sequence[str]) -> Vectors:
        _, loaded, pooling, length = self._load()
        windows: list[_Window] = []
        for index, encoding in enumerate(loaded.tokenizer.encode_batch([clean(text) for text in texts])):
            windows.extend(_Window(index, ids) for ids in _windows(encoding, length))
        runs = equal_length_runs([len(window.ids) for window in windows], length)
        jobs = [(loaded, pooling, [windows[member] for member in run], padded) for run, padded in runs]
        pooled = np.zeros((len(windows), loaded.dimension), dtype=np.float32)
        if self._threads == 1 or len(jobs) == 1:
            outputs = list(map(_run, jobs))
        else:
            with ThreadPoolExecutor(min(self._threads, len(jobs)), thread_name_prefix="surefoot") as pool:
                outputs = list(pool.map(_run, jobs))
        for (run, _), output in zip(runs, outputs, strict=True):
            pooled[run] = output
        vectors = np.empty((len(texts), loaded.dimension), dtype=np.float32)
        owners = np.array([window.text for window in windows])
        starts = np.searchsorted(owners, np.arange(len(texts) + 1))
        for index in range(len(texts)):
            part = slice(starts[index], starts[index + 1])
            weights = np.array([len(window.ids) for window in windows[part]], dtype=np.float64)
            # In float64 and one by one: the norm does not depend on how many rows are reduced together.
            mean = (weights[:, None] * pooled[part].astype(np.float64)).sum(axis=0) / weights.sum()
            norm = math.sqrt(float(np.dot(mean, mean)))
            if not 0 < norm < math.inf:
                raise ModelError(f"{self.name} returned a vector that cannot be normalised")
            vectors[index] = mean / norm
        return vectors

    def _load(self) -> tuple[ResolvedModel, _Loaded, Pooling, int]:
        if self._ready is None:
            with self._lock:
                if self._ready is None:
                    resolved = resolve_model(
                        self._name, task="embed", download=self._download, revision=self._revision
                    )
                    pooling = self._pooling or _said_pooling(resolved, self._name)
                    length = min(self._max_length or resolved.record.max_length, resolved.record.max_length)
                    self._ready = (resolved, _open(resolved), pooling, length)
        return self._ready


def _strings(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be a list of strings, not one {type(texts).__name__}")
    given = list(texts)
    for index, text in enumerate(given):
        if not isinstance(text, str):
            raise InputError(f"texts[{index}] must be a string, not {type(text).__name__}")
    return given


def _windows(encoding: Any, length: int) -> list[list[int]]:
    """The ids of a text as they are, or as equal parts of at most ``length`` with the special tokens of
    each.
    """
    ids: list[int] = encoding.ids
    if len(ids) <= length:
        return [ids]
    body = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
    first, last = body[0], body[-1] + 1
    before, after = ids[:first], ids[last:]
    count = -(-(last - first) // (length - len(before) - len(after)))
    edges = [first + (last - first) * part // count for part in range(count + 1)]
    return [[*before, *ids[start:end], *after] for start, end in itertools.pairwise(edges)]


def _run(job: tuple[_Loaded, Pooling, list[_Window], int]) -> Vectors:
    """Pooled vectors, not normalised, of windows that are padded to one length."""
    loaded, pooling, windows, padded = job
    feeds = {name: np.zeros((len(windows), padded), dtype=np.int64) for name in loaded.inputs}
    for row, window in enumerate(windows):
        feeds["input_ids"][row, : len(window.ids)] = window.ids
        feeds["attention_mask"][row, : len(window.ids)] = 1
    try:
        hidden = loaded.session.run(["last_hidden_state"], feeds)[0]
    except Exception as error:  # ONNX Runtime's own types have no common base
        raise ModelError(f"inference failed: {error}") from error
    if pooling == "cls":
        return np.asarray(hidden[:, 0], dtype=np.float32)
    return np.stack([hidden[row, : len(window.ids)].mean(axis=0) for row, window in enumerate(windows)])


def _open(resolved: ResolvedModel) -> _Loaded:
    with _loading:
        if resolved.fingerprint not in _loaded:
            _loaded[resolved.fingerprint] = _read(resolved)
        return _loaded[resolved.fingerprint]


def _read(resolved: ResolvedModel) -> _Loaded:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(resolved.tokenizer_path))
    except Exception as error:
        raise ModelIntegrityError(f"cannot read the tokenizer of {resolved.record.name}: {error}") from error
    tokenizer.no_truncation()  # once, and never again: changing it while another thread encodes fails
    tokenizer.no_padding()
    session = open_session(resolved.model_path)
    inputs = frozenset(node.name for node in session.get_inputs())
    outputs = {node.name: node.shape for node in session.get_outputs()}
    known = {"input_ids", "attention_mask", "token_type_ids"}
    if not {"input_ids", "attention_mask"} <= inputs <= known or "last_hidden_state" not in outputs:
        raise ModelError(
            f"{resolved.record.name} is no encoder: inputs {sorted(inputs)}, outputs {sorted(outputs)}"
        )
    width = outputs["last_hidden_state"][-1]
    if not isinstance(width, int):
        width = resolved.config.get("hidden_size")
    if not isinstance(width, int) or width < 1:
        raise ModelError(f"{resolved.record.name} does not say how long its vectors are")
    return _Loaded(session, tokenizer, inputs, width)


def _said_pooling(resolved: ResolvedModel, name: str | os.PathLike[str] | None) -> Pooling:
    """What the model says about pooling; a wrong guess would go unnoticed, so nothing is guessed.

    Raises:
        ConfigurationError: it says nothing, or something else than the mean or the first token.
    """
    said = resolved.record.export.get("pooling")
    if said in ("mean", "cls"):
        return "mean" if said == "mean" else "cls"
    folders = [resolved.model_path.parent, resolved.model_path.parent.parent]
    if name is not None and Path(os.fspath(name)).is_dir():
        folders.insert(0, Path(os.fspath(name)))
    for folder in folders:
        path = inside(folder, _POOLING_FILE)
        if path is not None:
            config = read_json(path)
            modes = [key for key, value in config.items() if key.startswith("pooling_mode") and value is True]
            if len(modes) == 1 and modes[0] in _POOLING_MODES:
                return _POOLING_MODES[modes[0]]
            raise ConfigurationError(
                f"{resolved.record.name} pools in a way that surefoot does not know: {', '.join(modes)}"
            )
    raise ConfigurationError(
        f"{resolved.record.name} does not say how to pool its token vectors; give pooling='mean' or 'cls'"
    )
