"""ONNX Runtime sessions over text pairs: same pair, same bits, whatever else is being scored.

Three things make a score depend on its company elsewhere: padding to the longest of a batch, a number
of threads that splits a sum differently, and arithmetic in int8. Here every pair is padded to a length
that depends on it alone, a run holds pairs of one length only, each run is computed by one thread
(parallelism is across runs), and arithmetic is float32. The results are then bit-identical, which the
tests check. Arithmetic in int8 is for those who ask for it, see :class:`PairModel`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surefoot.errors import ConfigurationError, ModelError
from surefoot.inference.cache import ScoreCache
from surefoot.inference.processor import INT8, processor
from surefoot.inference.session import Arithmetic, available_threads, check_arithmetic, open_session
from surefoot.inference.text import Pair, TextEncoder

__all__ = ["PairModel", "Progress", "equal_length_runs"]

Progress = Callable[[int, int], None]

_LENGTH_STEP: Final = 8
"""Pairs are padded to a multiple of this, so that runs of equal length exist at all."""

_RUN_TOKENS: Final = 256
"""Tokens in one run. On a CPU larger batches gain nothing beyond this, and small ones balance better."""

_PARITY: Final = (
    ("The museum opens at nine in the morning and closes at six.", "The museum opens at nine."),
    ("The museum opens at nine in the morning and closes at six.", "The museum never closes on Mondays."),
    (
        "In 2019 the firm had 1,250 employees in 14 countries, most of them in Asia.",
        "It had 1,250 employees.",
    ),
    (
        "In 2019 the firm had 1,250 employees in 14 countries, most of them in Asia.",
        "It was founded in 1990.",
    ),
    ("how long do refunds take", "Money is back on your card within five working days. " * 4),
    ("who designed the bridge", "The river is crossed by two ferries, which run all year. " * 4),
)
"""Pairs whose logits must agree before int8 arithmetic is used; short and long, alike and apart."""

_LARGEST_GAP: Final = 0.08
"""Logits may differ so much on average, as a share of their spread over these pairs: 0.03 with VNNI."""

_log = logging.getLogger(__name__)


class PairModel:
    """A cross-encoder: (first text, second text) -> logits.

    Args:
        model: path of an ONNX file with inputs ``input_ids``, ``attention_mask`` and, where the
            architecture has segments, ``token_type_ids``, and the output ``logits``.
        tokenizer: path of the ``tokenizer.json`` that goes with it.
        fingerprint: digest of both, for the cache.
        max_length: positions of the model, special tokens included.
        threads: runs computed at a time; all available cores by default.
        cache: shared or private score cache; a private one by default.
        arithmetic: ``"int8"`` multiplies in int8, which is faster on some processors; scores then differ a
            little from those of other machines. It is taken only where the processor has instructions for
            it (VNNI or AMX), there is a graph for it, and six pairs come out as in float32; else
            arithmetic stays float32, and a line in the log says why. The attribute of the same name says
            which one is used.
        int8: the graph for that, which lies beside the model (:mod:`surefoot.models.int8graph`).

    Raises:
        ModelIntegrityError: a file is damaged.
        ModelError: the graph does not have the inputs and outputs above.
        ConfigurationError: ``threads`` is below 1, or ``arithmetic`` is unknown.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        fingerprint: str,
        max_length: int = 512,
        threads: int | None = None,
        cache: ScoreCache | None = None,
        arithmetic: Arithmetic = "float32",
        int8: Path | None = None,
    ) -> None:
        self.threads = available_threads() if threads is None else threads
        if self.threads < 1:
            raise ConfigurationError(f"threads must be at least 1: {threads}")
        check_arithmetic(arithmetic)
        self.encoder = TextEncoder(tokenizer)
        self.max_length = max_length
        self.fingerprint = fingerprint
        self.cache = ScoreCache() if cache is None else cache
        self._session = open_session(model)
        self._inputs = {node.name for node in self._session.get_inputs()}
        outputs = [node.name for node in self._session.get_outputs()]
        if not {"input_ids", "attention_mask"} <= self._inputs or "logits" not in outputs:
            raise ModelError(
                f"{model.name} is no cross-encoder: inputs {sorted(self._inputs)}, outputs {outputs}"
            )
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise ModelError(f"{model.name} needs inputs that surefoot does not know: {sorted(unknown)}")
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = 0
        self._pool_lock = threading.Lock()
        self.arithmetic: Arithmetic = "float32"
        if arithmetic == "int8":
            refused = self._try_int8(int8)
            if refused:
                _log.warning("%s: arithmetic stays float32: %s", model.name, refused)

    def _try_int8(self, graph: Path | None) -> str | None:
        """Take the session that computes in int8, or say why not."""
        if not INT8 & set(processor()[1]):
            return "this processor has neither VNNI nor AMX"
        if graph is None:
            return "its weights are not stored in int8, or it has no graph for it"
        exact, faster = self._session, open_session(graph)
        encodings = self.encoder.encode_pairs(_PARITY)
        short = [i for i, encoding in enumerate(encodings) if len(encoding.ids) <= self.max_length]
        lengths = [len(encodings[i].ids) for i in short]
        runs = equal_length_runs(lengths, self.max_length, tokens=0)
        jobs = [([short[i] for i in run], length, encodings) for run, length in runs]
        if not jobs:
            return "it reads too few tokens to be tried"
        expected = np.concatenate([self._run(job)[1] for job in jobs])
        self._session = faster
        apart = np.abs(np.concatenate([self._run(job)[1] for job in jobs]) - expected)
        gap = float(apart.mean() / max(float(np.ptp(expected)), 1e-6))
        if gap <= _LARGEST_GAP:  # also false where a logit is not a number
            self.arithmetic = "int8"
            self.fingerprint += "+int8"  # scores of the two must not be mixed in a cache
            return None
        self._session = exact
        return f"logits differ by {gap:.0%} of their spread"

    def titled(self, name: str) -> str:
        """The name of this model as reports show it: it says so where scores are those of int8 arithmetic."""
        return f"{name} (int8)" if self.arithmetic == "int8" else name

    def room(self, claim: str) -> int:
        """Tokens that a premise may have beside ``claim``; negative where the claim alone is too long."""
        return self.max_length - self.encoder.pair_overhead - self.encoder.count([claim])[0]

    def logits(self, pairs: Sequence[Pair], *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """Score pairs.

        Args:
            pairs: texts; duplicates are computed once, and pairs in the cache not at all.
            progress: called with (pairs done, pairs to do) from one thread at a time.

        Returns:
            Array of shape (len(pairs), labels), in the order of ``pairs``.

        Raises:
            ModelError: a pair is longer than the model; nothing is ever cut here.
        """
        keys = [self.cache.key(self.fingerprint, pair) for pair in pairs]
        known: dict[bytes, npt.NDArray[np.float32]] = {}
        missing: dict[bytes, Pair] = {}
        for key, pair in zip(keys, pairs, strict=True):
            if key in known or key in missing:
                continue
            cached = self.cache.get(key)
            if cached is None:
                missing[key] = pair
            else:
                known[key] = cached
        if missing:
            names = list(missing)
            encodings = self.encoder.encode_pairs(list(missing.values()))
            longest = max(len(encoding.ids) for encoding in encodings)
            if longest > self.max_length:
                raise ModelError(f"a pair has {longest} tokens, and the model reads {self.max_length}")
            done = 0
            runs = equal_length_runs(
                [len(encoding.ids) for encoding in encodings],
                self.max_length,
                # In int8 one scale serves a whole run: a pair that shared it would depend on the other pairs.
                tokens=_RUN_TOKENS if self.arithmetic == "float32" else 0,
            )
            for members, output in self._map([(run, length, encodings) for run, length in runs]):
                for member, row in zip(members, output, strict=True):
                    known[names[member]] = row
                    self.cache.put(names[member], row)
                done += len(members)
                if progress is not None:
                    progress(done, len(names))
        if not pairs:
            return np.zeros((0, self._width()), dtype=np.float32)
        return np.stack([known[key] for key in keys])

    def _width(self) -> int:
        shape = self._session.get_outputs()[0].shape
        return shape[-1] if isinstance(shape[-1], int) else 0

    def _map(
        self, jobs: list[tuple[list[int], int, list[Any]]]
    ) -> Iterable[tuple[list[int], npt.NDArray[np.float32]]]:
        if self.threads == 1 or len(jobs) == 1:
            return map(self._run, jobs)
        return self._executor().map(self._run, jobs)

    def _executor(self) -> ThreadPoolExecutor:
        with self._pool_lock:
            # Threads do not survive a fork; the child makes its own instead of waiting for ever.
            if self._pool is None or self._pool_pid != os.getpid():
                self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="surefoot")
                self._pool_pid = os.getpid()
            return self._pool

    def _run(self, job: tuple[list[int], int, list[Any]]) -> tuple[list[int], npt.NDArray[np.float32]]:
        members, length, encodings = job
        shape = (len(members), length)
        feeds = {name: np.zeros(shape, dtype=np.int64) for name in self._inputs}
        for row, member in enumerate(members):
            encoding = encodings[member]
            size = len(encoding.ids)
            feeds["input_ids"][row, :size] = encoding.ids
            feeds["attention_mask"][row, :size] = 1
            if "token_type_ids" in feeds:
                feeds["token_type_ids"][row, :size] = encoding.type_ids
        try:
            output = self._session.run(["logits"], feeds)[0]
        except Exception as error:
            raise ModelError(f"inference failed: {error}") from error
        return members, np.asarray(output, dtype=np.float32)


def equal_length_runs(
    lengths: Sequence[int], max_length: int, *, tokens: int = _RUN_TOKENS
) -> list[tuple[list[int], int]]:
    """Group pairs of equal padded length, longest first, at most ``tokens`` tokens a run, or one pair."""
    buckets: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        padded = min(-(-length // _LENGTH_STEP) * _LENGTH_STEP, max_length)
        buckets.setdefault(padded, []).append(index)
    runs: list[tuple[list[int], int]] = []
    for length in sorted(buckets, reverse=True):  # longest first: the last run to end is then a short one
        size = max(1, tokens // max(length, 1))
        members = buckets[length]
        runs.extend((members[at : at + size], length) for at in range(0, len(members), size))
    return runs
