"""Scores that were computed before."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from surefoot.errors import ConfigurationError
from surefoot.inference.text import Pair, clean

__all__ = ["ScoreCache"]


class ScoreCache:
    """A bounded map from (model, premise, claim) to logits; the least recently used entry goes first.

    Keys are digests, so that a cache of ``size`` entries holds a few hundred bytes each, however
    long the texts. Safe under threads.
    """

    def __init__(self, size: int = 16_384) -> None:
        if size < 0:
            raise ConfigurationError(f"cache size must not be negative: {size}")
        self._size = size
        self._entries: OrderedDict[bytes, npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @staticmethod
    def key(fingerprint: str, pair: Pair) -> bytes:
        """A 16-byte digest; lengths go in first, so that no two different pairs share a preimage."""
        premise, claim = (clean(text).encode("utf-8") for text in pair)
        head = f"{fingerprint}\0{len(premise)}\0{len(claim)}\0".encode()
        return hashlib.blake2b(head + premise + claim, digest_size=16).digest()

    def get(self, key: bytes) -> npt.NDArray[np.float32] | None:
        """The logits stored under ``key``, or ``None``."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: bytes, logits: npt.NDArray[np.float32]) -> None:
        """Store ``logits``, dropping the oldest entry when full."""
        if not self._size:
            return
        with self._lock:
            self._entries[key] = logits
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
