"""What a person hands to ``surefoot check``: a JSON request, or an answer and source files.

Everything that is wrong with it is said with its place: line and column for JSON that does not parse
(RFC 8259), a path such as ``sources[2].text`` for JSON of the wrong shape, a byte for text that is
not UTF-8. Duplicate keys, ``NaN`` and numbers beyond a float are refused, since parsers disagree
about them (RFC 7493).
"""

from __future__ import annotations

import difflib
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import InputError
from surefoot.readers import html_text, pdf_text

__all__ = [
    "CheckRequest",
    "parse_json",
    "parse_request",
    "read_files",
    "read_request",
    "read_sources",
    "read_text",
]

_MB = 1_000_000
DEFAULT_MAX_MB = 64.0
MAX_SOURCES = 100_000
_MAX_DEPTH = 64  # of nested JSON; every later step that walks metadata stays far from the recursion limit
_TEXT_FIELDS = ("expanded_context", "chunk_text", "text")  # the first that is not empty is read
_SOURCE_FIELDS = ("id", "title", "metadata", *_TEXT_FIELDS)
_REQUEST_FIELDS = ("question", "answer", "sources", "citations")

SourceInput = str | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """One answer to check, in the shape that ``Verifier.verify`` takes.

    Attributes:
        answer: the answer; ``None`` and ``""`` are passed on, not refused.
        sources: strings, mappings with ``id``, ``text``, ``title``, ``metadata``, or ``None``.
        question: the question, if there is one.
        citations: citation records, if the caller has them apart from the text.
        warnings: what was read with loss, for people.
    """

    answer: str | None
    sources: tuple[SourceInput, ...]
    question: str | None = None
    citations: tuple[Mapping[str, Any], ...] | None = None
    warnings: tuple[str, ...] = ()


def read_request(path: str, *, max_mb: float = DEFAULT_MAX_MB) -> CheckRequest:
    """Read a JSON request from a file, or from standard input for ``"-"``.

    Args:
        path: a file of ``{"answer", "sources", "question"?, "citations"?}``.
        max_mb: refuse a file of more megabytes (10^6 bytes).

    Raises:
        InputError: the file cannot be read, is too large, not UTF-8, not JSON, or of another shape.
    """
    name = "standard input" if path == "-" else path
    return parse_request(_read_bytes(path, max_mb), name=name)


def parse_request(data: bytes | str, *, name: str = "request") -> CheckRequest:
    """Read a JSON request from bytes (UTF-8, a byte order mark is accepted) or text.

    Raises:
        InputError: with ``name`` and the place of what is wrong.
    """
    request = _object(_parse_json(data, name), "", name)
    _known_fields(request, _REQUEST_FIELDS, "", name)
    for field in ("answer", "sources"):
        if field not in request:
            raise InputError(f'{name}: the field "{field}" is missing')
    return CheckRequest(
        answer=_optional_string(request["answer"], "answer", name),
        sources=_sources(request["sources"], "sources", name),
        question=_optional_string(request.get("question"), "question", name),
        citations=_citations(request.get("citations"), name),
    )


def read_files(
    answer: str,
    sources: Sequence[str],
    *,
    question: str | None = None,
    max_mb: float = DEFAULT_MAX_MB,
) -> CheckRequest:
    """Read an answer and its sources from files.

    A source file is read by its suffix: ``.html`` and ``.htm`` (extra ``html``), ``.pdf`` (extra ``pdf``),
    ``.json`` (a source object, an array of sources, a request, or else any JSON, which is then the source's
    text), everything else as text. Of a request only its sources are read: its answer is what is to be
    checked, and as a source it would support itself. The id of a source is its file name, or its whole
    path where two files have the same name.

    Args:
        answer: path of a text file, or ``"-"`` for standard input.
        sources: paths.
        question: passed on.
        max_mb: refuse a file of more megabytes (10^6 bytes).

    Raises:
        InputError: a file cannot be read, is too large or malformed.
        MissingExtraError: the suffix needs a package that is not installed.
    """
    warnings: list[str] = []
    text = _decode(_read_bytes(answer, max_mb), answer, warnings)
    read = read_sources(sources, warnings, max_mb=max_mb)
    return CheckRequest(text, read, question, None, tuple(warnings))


def read_sources(
    paths: Sequence[str], warnings: list[str], *, max_mb: float = DEFAULT_MAX_MB
) -> tuple[SourceInput, ...]:
    """The sources in files, see :func:`read_files`; what was read with loss is added to ``warnings``."""
    names = [Path(path).name for path in paths]
    read: list[SourceInput] = []
    for path, name in zip(paths, names, strict=True):
        source_id = path if names.count(name) > 1 else name
        read.extend(_read_source(path, source_id, max_mb, warnings))
    if len(read) > MAX_SOURCES:
        raise InputError(f"{len(read)} sources are more than the limit of {MAX_SOURCES}")
    return tuple(read)


def read_text(path: str, warnings: list[str], *, max_mb: float = DEFAULT_MAX_MB) -> str:
    """A text file, or standard input for ``"-"``; bytes that are no UTF-8 are replaced, with a warning."""
    return _decode(_read_bytes(path, max_mb), path, warnings)


def parse_json(text: str, name: str) -> Any:
    """JSON without duplicate keys, ``NaN`` and endless nesting.

    Raises:
        InputError: with ``name`` and the place of what is wrong.
    """
    return _parse_json(text, name)


# files


def _read_bytes(path: str, max_mb: float) -> bytes:
    limit = int(max_mb * _MB)
    try:
        if path == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read: {reason}") from error
    if len(data) > limit:
        raise InputError(f"{path}: larger than {max_mb:g} MB; raise the limit with --max-mb")
    return data


def _decode(data: bytes, path: str, warnings: list[str]) -> str:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        warnings.append(
            f"{path}: byte {error.start} is not {encoding.removesuffix('-sig').upper()}; "
            "what could not be read is shown as U+FFFD"
        )
        return data.decode(encoding, errors="replace")


def _read_source(path: str, source_id: str, max_mb: float, warnings: list[str]) -> list[SourceInput]:
    data = _read_bytes(path, max_mb)
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        return _read_json_source(data, path, source_id, warnings)
    source: dict[str, Any] = {"id": source_id}
    if suffix in (".html", ".htm", ".xhtml"):
        source["title"], source["text"] = html_text(_decode(data, path, warnings), path)
    elif suffix == ".pdf":
        source["title"], source["text"] = pdf_text(data, path, warnings)
    else:
        source["text"] = _decode(data, path, warnings)
    return [source]


def _read_json_source(data: bytes, path: str, source_id: str, warnings: list[str]) -> list[SourceInput]:
    value = _parse_json(data, path)
    if isinstance(value, dict) and _looks_like_request(value):
        warnings.append(f"{path}: this is a request: only its sources are read")
        return list(_sources(value["sources"], "sources", path))
    if isinstance(value, list) and all(item is None or isinstance(item, str | dict) for item in value):
        if all(not isinstance(item, dict) or _looks_like_source(item) for item in value):
            return list(_sources(value, "", path))
    elif isinstance(value, dict) and _looks_like_source(value):
        return [{"id": source_id, **_source_fields(value, "", path)}]
    elif isinstance(value, str):
        return [{"id": source_id, "text": value}]
    return [{"id": source_id, "text": data.decode("utf-8-sig")}]  # structured data: read as it stands


def _looks_like_source(value: Mapping[str, Any]) -> bool:
    return value.keys() <= set(_SOURCE_FIELDS) and any(field in value for field in _TEXT_FIELDS)


def _looks_like_request(value: Mapping[str, Any]) -> bool:
    return value.keys() <= set(_REQUEST_FIELDS) and "sources" in value and len(value) > 1


# JSON


class _Refused:
    """Stands in a parsed document for what was parsed but is refused, until its path is known."""

    def __init__(self, why: str) -> None:
        self.why = why


def _pairs(pairs: list[tuple[str, Any]]) -> Any:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return _Refused(f"the key {_quoted(twice)} appears twice")
    return result


def _constant(literal: str) -> _Refused:
    return _Refused(f"{literal} is not JSON")


def _float(literal: str) -> float | _Refused:
    value = float(literal)
    return value if math.isfinite(value) else _Refused(f"the number {literal[:40]} is out of range")


def _int(literal: str) -> int | _Refused:
    return int(literal) if len(literal) <= 4_000 else _Refused("the number has too many digits")


def _parse_json(data: bytes | str, name: str) -> Any:
    if isinstance(data, bytes):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: JSON has to be UTF-8; byte {error.start} is not") from error
    else:
        text = data.removeprefix("\ufeff")
    try:
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except json.JSONDecodeError as error:
        raise InputError(f"{name}: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise InputError(f"{name}: the JSON is nested too deeply") from error
    _refuse(value, name)
    return value


def _refuse(value: Any, name: str) -> None:
    """Raise for a refused value anywhere in a document, without recursion."""
    if isinstance(value, _Refused):
        raise InputError(_at(name, "", value.why))
    stack: list[tuple[Any, str, int]] = [(value, "", 1)]
    while stack:
        parent, path, depth = stack.pop()
        if depth > _MAX_DEPTH:
            raise InputError(f"{name}: the JSON is nested too deeply: more than {_MAX_DEPTH} levels")
        named = isinstance(parent, dict)
        if not named and not isinstance(parent, list):
            continue
        children: Iterable[tuple[Any, Any]] = parent.items() if named else enumerate(parent)
        for key, item in children:
            if isinstance(item, _Refused | dict | list):
                place = _join(path, key) if named else f"{path}[{key}]"
                if isinstance(item, _Refused):
                    raise InputError(_at(name, place, item.why))
                stack.append((item, place, depth + 1))


def _join(path: str, key: str) -> str:
    if not key.isidentifier():
        return f"{path}[{_quoted(key)}]"
    return f"{path}.{key}" if path else key


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= 60 else text[:60] + "...")


def _at(name: str, path: str, what: str) -> str:
    return f"{name}: {path}: {what}" if path else f"{name}: {what}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def _object(value: Any, path: str, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(_at(name, path, f"expected an object, got {_kind(value)}"))
    return value


def _list(value: Any, path: str, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(_at(name, path, f"expected an array, got {_kind(value)}"))
    return value


def _optional_string(value: Any, path: str, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(_at(name, path, f"expected a string, got {_kind(value)}"))
    return value


def _known_fields(value: dict[str, Any], known: Sequence[str], path: str, name: str) -> None:
    for field in value:
        if field in known:
            continue
        close = difflib.get_close_matches(field[:60], known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
        if known is _SOURCE_FIELDS and not close:
            hint += "; put anything of your own under metadata"
        raise InputError(_at(name, _join(path, field), f"unknown field; {hint}"))


def _sources(value: Any, path: str, name: str) -> tuple[SourceInput, ...]:
    items = _list(value, path, name)
    if len(items) > MAX_SOURCES:
        raise InputError(_at(name, path, f"{len(items)} sources are more than the limit of {MAX_SOURCES}"))
    return tuple(_source(item, f"{path}[{index}]", name) for index, item in enumerate(items))


def _source(value: Any, path: str, name: str) -> SourceInput:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise InputError(_at(name, path, f"expected a string, an object or null, got {_kind(value)}"))
    return _source_fields(value, path, name)


def _source_fields(value: dict[str, Any], path: str, name: str) -> dict[str, Any]:
    _known_fields(value, _SOURCE_FIELDS, path, name)
    texts = [_optional_string(value[key], _join(path, key), name) for key in _TEXT_FIELDS if key in value]
    if not texts:
        raise InputError(_at(name, path, f"no text: expected one of {', '.join(_TEXT_FIELDS)}"))
    result: dict[str, Any] = {"text": next((text for text in texts if text), "")}
    source_id = value.get("id")
    if isinstance(source_id, int) and not isinstance(source_id, bool):
        source_id = str(source_id)  # vector stores number their rows
    for key, given in (("id", source_id), ("title", value.get("title"))):
        text = _optional_string(given, _join(path, key), name)
        if text is not None:
            result[key] = text
    if value.get("metadata") is not None:
        result["metadata"] = _object(value["metadata"], _join(path, "metadata"), name)
    return result


def _citations(value: Any, name: str) -> tuple[Mapping[str, Any], ...] | None:
    if value is None:
        return None
    items = _list(value, "citations", name)
    return tuple(_object(item, f"citations[{index}]", name) for index, item in enumerate(items))
