"""What is known about a model: files, labels, licence, thresholds. Data only; nothing is opened here."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from surefoot.errors import ConfigurationError, ModelError, ModelIntegrityError
from surefoot.models.monotone import Monotone

__all__ = ["TOKENIZER_FILES", "Calibration", "FileRecord", "Fusion", "ModelRecord", "describe", "labels_of"]

TOKENIZER_FILES: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spm.model",
    "sentencepiece.bpe.model",
)
"""What a tokenizer may consist of; all of it data."""

_LONGEST = 512
_MOST_LABELS = 1000


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a model.

    Attributes:
        path: below the model's folder, with forward slashes.
        sha256: of the content, 64 hex digits.
        bytes: size.
    """

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """How the raw output of a model becomes a decision.

    Attributes:
        kind: ``"platt"``: support = sigmoid(a * x + b), where x is the log-odds of entailment (Platt 1999);
            ``"monotone"``: the same where x is what ``decision`` makes of them and of the features.
        a, b: fitted so that a support of 0.5 is the decision threshold; 1 and 0 leave x as it is.
        review_low, review_high: a support in [review_low, review_high) is undecided; 0 to 1.
        contradiction: probability of contradiction from which a claim counts as contradicted whatever its
            support, 0 to 1. A claim that fails anyway counts as contradicted from 0.6.
        decision: of the kind ``"monotone"``, else ``None``.
        presets: thresholds (``review_low``, ``review_high``) by name of a task.
    """

    kind: str = "platt"
    a: float = 1.0
    b: float = 0.0
    review_low: float = 0.4
    review_high: float = 0.5
    contradiction: float = 0.6
    decision: Monotone | None = None
    presets: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        numbers = (self.a, self.b, self.review_low, self.review_high, self.contradiction)
        if self.kind != ("platt" if self.decision is None else "monotone"):
            raise ModelIntegrityError("a calibration is 'platt', or 'monotone' with a decision")
        if not all(isinstance(x, (int, float)) and math.isfinite(x) for x in numbers):
            raise ModelIntegrityError("a calibration needs finite numbers")
        if (
            self.a <= 0
            or not 0 <= self.review_low <= self.review_high <= 1
            or not 0 <= self.contradiction <= 1
            or not all(_is_band(band) for band in self.presets.values())
        ):
            raise ModelIntegrityError("a calibration needs a > 0, and thresholds in order within 0 to 1")

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read parsed JSON.

        Raises:
            ModelIntegrityError: it is malformed.
        """
        if not isinstance(data, Mapping):
            raise ModelIntegrityError("a calibration must be a JSON object")
        fields = dict(data)
        try:
            if fields.get("decision") is not None:
                fields["decision"] = Monotone.from_dict(fields["decision"])
            pairs = {str(name): tuple(pair) for name, pair in fields.get("presets", {}).items()}
            fields["presets"] = pairs
            return cls(**fields)
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelIntegrityError(f"malformed calibration: {error}") from error

    def preset(self, name: str) -> Self:
        """The same with the thresholds of a task.

        Raises:
            ConfigurationError: there is no such preset.
        """
        if name not in self.presets:
            known = ", ".join(sorted(self.presets)) or "none"
            raise ConfigurationError(f"no preset is called {name!r}; this model has: {known}")
        low, high = self.presets[name]
        return replace(self, review_low=low, review_high=high)

    def support(self, log_odds: float, features: Mapping[str, float] | None = None) -> float:
        """Calibrated support, 0 to 1, of the entailment log-odds ln(p / (1 - p)).

        Args:
            log_odds: of the best premise.
            features: needed by the kind ``"monotone"``, ignored by the other.

        Raises:
            ValueError: a decision without features.
        """
        if self.decision is not None:
            if features is None:
                raise ValueError("this calibration needs features")
            log_odds = self.decision.value(log_odds, features)
        x = self.a * log_odds + self.b
        if x >= 0:
            return 1.0 / (1.0 + math.exp(-x))
        grown = math.exp(x)  # of a negative number: cannot overflow
        return grown / (1.0 + grown)


def _is_band(band: object) -> bool:
    if not isinstance(band, tuple) or len(band) != 2:
        return False
    if not all(type(x) in (int, float) and math.isfinite(x) for x in band):
        return False
    return bool(0 <= band[0] <= band[1] <= 1)


@dataclass(frozen=True, slots=True)
class Fusion:
    """What a reranker's order is made of: score = logit * x + cosine * y + lexical * z.

    Attributes:
        logit: weight of the model's own output.
        cosine: weight of the cosine of query and passage by the bundled embedder, -1 to 1.
        lexical: weight of the share of BM25 that the passage gets, see :mod:`surefoot.rerank.fusion`.
        a, b: probability of relevance = sigmoid(a * score + b); :class:`Calibration` is for the logit alone.
        long_query: words of a query beyond which the logit counts less, see
            :func:`surefoot.rerank.fusion.logit_share`; 0 is never.
    """

    logit: float = 1.0
    cosine: float = 0.0
    lexical: float = 0.0
    a: float = 1.0
    b: float = 0.0
    long_query: float = 0.0

    def __post_init__(self) -> None:
        numbers = (self.logit, self.cosine, self.lexical, self.a, self.b, self.long_query)
        if not all(type(x) in (int, float) and math.isfinite(x) for x in numbers):
            raise ModelIntegrityError("a fusion needs finite numbers")
        if min(self.logit, self.cosine, self.lexical) < 0 or self.logit + self.cosine + self.lexical <= 0:
            raise ModelIntegrityError("a fusion needs weights of 0 or more, one of them above 0")
        if self.a <= 0:
            raise ModelIntegrityError("a fusion needs a > 0: probabilities must rise with scores")
        if self.long_query < 0:
            raise ModelIntegrityError("a fusion needs a long_query of 0 or more words")


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """One entry of the manifest.

    Attributes:
        name: the bundled name, folder name or hub name.
        task: ``"nli"``, ``"relevance"``, ``"embed"`` or ``"static"``.
        files: everything that is loaded, the ONNX file first.
        architecture: the class name in the checkpoint's config.
        parameters: number of weights; 0 where it was not counted.
        max_length: most tokens of a pair or text, special tokens included.
        labels: names of the outputs in order, as the checkpoint spells them; empty for an embedder.
        license: SPDX expression, or ``"unknown"``.
        provenance: what it was trained from and on, and how it may be used.
        calibration: from raw outputs to decisions.
        export: how the file was made, and what storing it in int8 cost.
        fusion: signals that a reranker's order also needs; ``None`` where its logit stands alone.
    """

    name: str
    task: str
    files: tuple[FileRecord, ...]
    architecture: str
    parameters: int
    max_length: int
    labels: tuple[str, ...]
    license: str = "unknown"
    provenance: Mapping[str, Any] = field(default_factory=dict, hash=False)
    calibration: Calibration = field(default_factory=Calibration)
    export: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fusion: Fusion | None = None

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read a record from parsed JSON.

        Raises:
            ModelIntegrityError: a field is missing, unknown or of the wrong type.
        """
        if not isinstance(data, dict):
            raise ModelIntegrityError("a model record must be a JSON object")
        fields = dict(data)
        try:
            files = fields.pop("files")
            fields["files"] = tuple(FileRecord(**item) for item in files)
            fields["labels"] = tuple(fields.get("labels", ()))
            if "calibration" in fields:
                fields["calibration"] = Calibration.from_dict(fields["calibration"])
            if fields.get("fusion") is not None:
                fields["fusion"] = Fusion(**fields["fusion"])
            record = cls(**fields)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ModelIntegrityError(f"malformed model record: {error}") from error
        record._check()
        return record

    def _check(self) -> None:
        texts = (self.name, self.task, self.architecture, self.license, *self.labels)
        numbers = (self.parameters, self.max_length, *(item.bytes for item in self.files))
        file_texts = [text for item in self.files for text in (item.path, item.sha256)]
        if (
            not self.files
            or not all(isinstance(text, str) for text in (*texts, *file_texts))
            or not all(type(number) is int and number >= 0 for number in numbers)
            or not isinstance(self.provenance, Mapping)
            or not isinstance(self.export, Mapping)
        ):
            raise ModelIntegrityError("malformed model record: a field has the wrong type")

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values; :meth:`from_dict` reads it back."""
        return dataclasses.asdict(self)


def labels_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The output names of a Hugging Face config in the order of the outputs.

    Raises:
        ModelError: the ids are not 0, 1, 2, ... without a gap: no name could be trusted.
    """
    table = config.get("id2label")
    if table is None:
        table = {str(index): f"LABEL_{index}" for index in range(_count(config))}
    if not isinstance(table, Mapping) or not 0 < len(table) <= _MOST_LABELS:
        raise ModelError("config.json: id2label must be an object of 1 to 1000 labels")
    labels = [table.get(str(index)) for index in range(len(table))]
    if not all(isinstance(label, str) for label in labels):
        raise ModelError("config.json: id2label must map 0, 1, 2, ... to names")
    return tuple(str(label) for label in labels)


def _count(config: Mapping[str, Any]) -> int:
    count = config.get("num_labels", 2)
    return count if type(count) is int and 0 < count <= _MOST_LABELS else 2


def describe(
    config: Mapping[str, Any],
    *,
    name: str,
    task: str,
    files: tuple[FileRecord, ...],
    tokenizer_config: Mapping[str, Any] | None = None,
    parameters: int = 0,
) -> ModelRecord:
    """A record for a model that comes with a Hugging Face ``config.json`` and no record of its own.

    Raises:
        ModelError: the labels do not fit the task: one or two for ``relevance``, two or more for ``nli``.
    """
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else "unknown"
    labels = () if task in ("embed", "static") else labels_of(config)
    if task == "nli" and len(labels) < 2:
        raise ModelError(f"{name[:200]!r} has a single output: a relevance model, not an NLI model")
    if task == "relevance" and len(labels) > 2:
        raise ModelError(f"{name[:200]!r} has {len(labels)} outputs: not a relevance model, with one or two")
    return ModelRecord(
        name=name,
        task=task,
        files=files,
        architecture=str(first),
        parameters=parameters,
        max_length=_max_length(config, tokenizer_config or {}),
        labels=labels,
    )


def _max_length(config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> int:
    """Fewest of 512, the positions that the model has, and what its tokenizer says."""
    positions = config.get("max_position_embeddings")
    longest = _LONGEST
    if type(positions) is int and positions > 0:
        # RoBERTa and its relatives spend positions 0 to pad_token_id on padding.
        shifted = config.get("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet")
        pad = config.get("pad_token_id")
        longest = min(longest, positions - (pad + 1 if shifted and type(pad) is int else 0))
    said = tokenizer_config.get("model_max_length")
    if isinstance(said, (int, float)) and not isinstance(said, bool) and 8 <= said <= longest:
        longest = int(said)
    return max(longest, 8)
