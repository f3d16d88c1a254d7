"""Text of strangers, made fit to be quoted in a prompt.

Two things are done to it. Characters that act without being seen are removed or made visible. And
whatever could be read as structure is broken up: special tokens of chat templates (many servers
tokenise them even inside a message), runs of angle brackets (the fences of our prompt), line ends of
unusual kinds. Every line is then quoted with a mark in front, so that no line of the text stands where a
line of the prompt would ("datamarking": Hines et al. 2024, arXiv:2403.14720).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["defuse", "hidden_ascii", "quote", "without_invisible"]

QUOTE_MARK: Final = "| "

_LINE_ENDS: Final = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ACTING: Final = re.compile("[\x08\x1b\x7f]")
"""Overwriting and terminal control."""

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_JOINERS: Final = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")
"""Joiners between letters of other scripts, and inside emoji, mean something there."""

_SUSPICIOUS: Final = re.compile(
    "[\U000e0000-\U000e00ff]"  # tag characters spell ASCII that nobody sees
    "|[\u202a-\u202e\u2066-\u2069]"  # text that is shown in another order than it is read
    "|(?<=[A-Za-z])[\u00ad\u034f\u115f\u1160\u180e\u200b-\u200f\u2060-\u2064\u3164\ufe00-\ufe0f\ufeff\uffa0](?=[A-Za-z])"
    "|[\u200b-\u200f\u2060-\u2064\ufeff]{4}"  # a message in zero-width characters
    "|[\ufe00-\ufe0f]{2}|[\U000e0100-\U000e01ef]{2}|(?<=[\x00-\x7f])[\U000e0100-\U000e01ef]"
)
_SOFT_HYPHEN_ONLY: Final = re.compile("(?<=[A-Za-z])\u00ad(?=[A-Za-z])")
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{1,100000}")

_CONTROL: Final = {
    **{code: f"<U+{code:04X}>" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)},
    **dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"),
}

_SPECIAL: Final = re.compile(
    r"<(?=[|｜/]?[\w ▁|｜-]{0,40}[|｜]>)"  # <|im_start|>, <|system|>, <｜User｜>
    r"|<(?=/?(?:s|bos|eos|pad|unk|end|eot|sep|cls|think|tool_call|tool_response|start_of_turn|end_of_turn|"
    r"system|assistant|user|human|developer|instructions?)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|SYS|CLS|SEP|MASK|PAD|UNK|BOS|EOS)\])"
    r"|<(?=/?<SYS>)|(?<=<)<(?=/?SYS>)",
    re.IGNORECASE,
)
_BRACKETS: Final = re.compile(r"<{2,}|>{2,}")


def without_invisible(text: str) -> tuple[str, bool]:
    """``text`` with the same line ends everywhere and nothing in it that acts without being seen.

    Control characters are shown as ``<U+0008>``, unpaired surrogates as U+FFFD; joiners stay where their
    script needs them.

    Returns:
        The text, and whether it held characters that ordinary text does not hold in that place.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    suspicious = _ACTING.search(text) is not None
    if _CONTROLS.search(text):
        text = _LINE_ENDS.sub("\n", text).translate(_CONTROL)
    if text.isascii() or not _INVISIBLE.search(text):
        return text, suspicious
    # Soft hyphens are where scanned and typeset text may break a word: ordinary, but never shown.
    suspicious = suspicious or _SUSPICIOUS.search(_SOFT_HYPHEN_ONLY.sub("", text)) is not None
    kept = _JOINERS.sub(lambda match: "\x00" if match.group() == "\u200c" else "\x01", text)
    kept = _INVISIBLE.sub("", kept)
    return kept.replace("\x00", "\u200c").replace("\x01", "\u200d"), suspicious


def hidden_ascii(text: str) -> str:
    """What the tag characters of ``text`` (U+E0020 to U+E007E) spell; empty where there are none."""
    return " ".join(
        "".join(chr(ord(character) - 0xE0000) for character in match.group())
        for match in _TAGS.finditer(text)
    )


def defuse(text: str) -> str:
    """``text``, as :func:`without_invisible` gives it, without special tokens and runs of brackets."""
    text = _SPECIAL.sub(lambda match: match.group() + " ", text)
    return _BRACKETS.sub(lambda match: " ".join(match.group()), text)


def quote(text: str) -> str:
    """:func:`defuse`, and every line marked as quoted."""
    return QUOTE_MARK + defuse(text).replace("\n", "\n" + QUOTE_MARK)
