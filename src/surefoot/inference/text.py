"""Text to token ids, the same for every model and safe under threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer

from surefoot.errors import ModelIntegrityError

__all__ = ["Pair", "TextEncoder", "clean"]

Pair = tuple[str, str]

_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")


def clean(text: str) -> str:
    """``text`` with lone surrogates replaced one for one, so that it encodes and offsets stay."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text


class TextEncoder:
    """A tokenizer that is configured once and never changed, hence safe under threads.

    Truncation and padding are off: a tokenizer that truncates does so silently, and switching either
    on while another thread encodes fails with "Already borrowed".
    """

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise ModelIntegrityError(f"cannot read the tokenizer {path.name}: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.pair_overhead: int = self._tokenizer.num_special_tokens_to_add(True)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Encodings without special tokens; each has ``ids`` and ``offsets`` in code points."""
        cleaned = [clean(text) for text in texts]
        return list(self._tokenizer.encode_batch(cleaned, add_special_tokens=False))

    def encode_pairs(self, pairs: Sequence[Pair]) -> list[Any]:
        """Encodings with special tokens and segment ids."""
        return list(self._tokenizer.encode_batch([(clean(a), clean(b)) for a, b in pairs]))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text, special tokens not counted."""
        return [len(encoding.ids) for encoding in self.encode(texts)]
