"""Finding text that was written to influence the judge rather than to inform a reader.

What is found is reported as flags; nothing is decided here. The text is looked at as it is and, where it
holds something that looks like a disguise, as it would read without it.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
import urllib.parse
from collections.abc import Iterator
from typing import Final

from surefoot.judge.cleaning import hidden_ascii, without_invisible
from surefoot.judge.patterns import KEYWORDS, PATTERNS, SQUEEZED
from surefoot.judge.records import Flag

__all__ = ["find_attacks"]

_PIECE: Final = 2_000
"""Characters that are normalised at a time: sorting a run of combining marks takes quadratic time."""

_LOOKALIKES: Final = {
    ord(character): latin
    for latin, characters in {
        "a": "аαɑꭺ", "b": "вьβ", "c": "сϲᴄ", "d": "ԁժ", "e": "еεҽ", "g": "ɡց", "h": "һհнη", "i": "іɩιıӏ",
        "j": "јϳ", "k": "кκ", "l": "ⅼӏǀ", "m": "мⅿ", "n": "ոпν", "o": "оοօ", "p": "рρ", "q": "ԛզ", "r": "гᴦ",
        "s": "ѕꜱ", "t": "тτ", "u": "սυц", "v": "ѵᴠ", "w": "ԝωѡ", "x": "хχ", "y": "уүγ", "z": "ᴢ",
    }.items()
    for character in characters
}  # fmt: skip
"""Letters of other scripts that look like Latin ones, lower case."""

_PLAIN: Final = {
    "꞉": ":", "：": ":", "∶": ":", "∕": "/", "⁄": "/", "。": ".", "‐": "-", "‑": "-", "–": "-", "—": "-",
    "−": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "→": "->", "｜": "|",
}  # fmt: skip
_PUNCTUATION: Final = re.compile("[" + "".join(_PLAIN) + "]")
_UNDERLINE: Final = re.compile(r"(?<![^\W_])_{1,3}|_{1,3}(?![^\W_])")
"""Emphasis around words; not the underscore inside a name."""
_SPACES: Final = re.compile(r"[^\S\n]{2,1000}|[^\S\n ]")
_MARKS: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u064b-\u0652\u093c\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]{1,1000}"
)

_ROT13: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_LEET: Final = str.maketrans("013457@$!|", "oleastasil")
_LEET_HINT: Final = re.compile(r"[a-z][0134579@$!|]{1,2}[a-z]|\b[13450@$][a-z]{2}")
_SPACED: Final = re.compile(r"(?:(?<![^\W_])[^\W_][ ._\-/|,*+]{1,3}){5,400}[^\W_](?![^\W_])")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,8000}={0,2}")
_HEX: Final = re.compile(r"(?:\\?x?[0-9a-fA-F]{2}[ :,]?){12,4000}")
_ESCAPE: Final = re.compile(r"\\u\{?([0-9a-fA-F]{4,6})\}?|\\x([0-9a-fA-F]{2})")
_BINARY: Final = re.compile(r"(?:[01]{8}[ ,]?){6,2000}")


def find_attacks(text: str) -> frozenset[Flag]:
    """What in ``text`` tries, or seems to try, to influence a reader that is a language model.

    Any text is accepted; time is linear in its length.
    """
    clean, invisible = without_invisible(text)
    flags = {Flag.INVISIBLE} if invisible else set()
    folded = _fold(clean)
    flags |= _matches(folded)
    if _disguised(clean, folded, hidden_ascii(text)):
        flags.add(Flag.ENCODED)
    return frozenset(flags)


def _matches(folded: str) -> set[Flag]:
    found: set[Flag] = set()
    for flag, stems, pattern in PATTERNS:
        if flag in found or (stems and not any(stem in folded for stem in stems)):
            continue
        if pattern.search(folded):
            found.add(flag)
    return found


def _fold(text: str) -> str:
    if not text.isascii():
        pieces = (
            _MARKS.sub("", unicodedata.normalize("NFKD", text[at : at + _PIECE]))
            for at in range(0, len(text), _PIECE)
        )
        text = "".join(pieces).casefold()
        if _SCRIPT_HINT.search(text):
            text = _latin_words(text)
        text = _PUNCTUATION.sub(lambda match: _PLAIN[match.group()], text)
    else:
        text = text.lower()
    for mark in "*`~":
        text = text.replace(mark, "")
    if "_" in text:
        text = _UNDERLINE.sub("", text)
    return _SPACES.sub(" ", text)


_SCRIPT_HINT: Final = re.compile("[" + "".join(map(chr, _LOOKALIKES)) + "]")
_WORD: Final = re.compile(r"[^\W\d_]{1,60}")


def _latin_words(text: str) -> str:
    """Letters of other scripts as the Latin ones they look like, in words that would then be Latin."""

    def swap(match: re.Match[str]) -> str:
        word = match.group()
        if word.isascii():
            return word
        changed = word.translate(_LOOKALIKES)
        return changed if changed.isascii() else word

    return _WORD.sub(swap, text)


def _disguised(clean: str, folded: str, hidden: str) -> bool:
    """Whether the text reads as an attack once a disguise is taken off."""
    for view in _views(clean, folded, hidden):
        if any(word in view for word in KEYWORDS) and _matches(view):
            return True
    return any(SQUEEZED.search(_squeeze(match.group())) for match in _SPACED.finditer(folded))


def _views(clean: str, folded: str, hidden: str) -> Iterator[str]:
    if hidden:
        yield _fold(hidden)
    plain = _unescape(clean)
    if plain != clean:
        yield _fold(plain)
    if _LEET_HINT.search(folded):
        yield folded.translate(_LEET)
    yield folded[::-1]
    yield folded.translate(_ROT13)
    for decoded in _decoded(clean):
        yield _fold(decoded)


def _unescape(text: str) -> str:
    """HTML entities, percent signs and backslash escapes as what they stand for."""
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = urllib.parse.unquote(text, errors="replace")
    if "\\" in text:
        text = _ESCAPE.sub(_character, text).replace("\\n", "\n").replace('\\"', '"')
    return without_invisible(text)[0]


def _character(match: re.Match[str]) -> str:
    code = int(match.group(1) or match.group(2), 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


def _decoded(text: str) -> Iterator[str]:
    """What runs of base64, hexadecimal or binary digits spell, where that is text."""
    for match in _BASE64.finditer(text):
        run = match.group().rstrip("=").replace("-", "+").replace("_", "/")
        if run.isalpha() and (run.islower() or run.isupper()):
            continue  # a long word
        with_padding = run[: len(run) // 4 * 4] if len(run) % 4 == 1 else run + "=" * (-len(run) % 4)
        try:
            data = base64.b64decode(with_padding)
        except (binascii.Error, ValueError):
            continue
        if (spelled := _text_of(data)) is not None:
            yield spelled
    for match in _HEX.finditer(text):
        digits = re.sub(r"\\?x|[ :,\\]", "", match.group())
        if (spelled := _text_of(bytes.fromhex(digits[: len(digits) // 2 * 2]))) is not None:
            yield spelled
    for match in _BINARY.finditer(text):
        digits = re.sub(r"[ ,]", "", match.group())
        data = bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits) - 7, 8))
        if (spelled := _text_of(data)) is not None:
            yield spelled


def _text_of(data: bytes) -> str | None:
    printable = sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in data)
    return data.decode("ascii", "replace") if data and printable >= 0.9 * len(data) else None


def _squeeze(text: str) -> str:
    return re.sub(r"[\W_]+", lambda match: ":" if ":" in match.group() else "", text)
