"""Which optional parts of a request a server accepts: asked for first, gone without once rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

__all__ = ["Features"]

_FILTERED: Final = "content_filter"
_SCHEMA_NAMES: Final = ("response_format", "json_schema", "json_object")
_SCHEMA_WORDS: Final = (*_SCHEMA_NAMES, "schema", "grammar")


@dataclass(frozen=True, slots=True)
class Features:
    """What is put into a request.

    Attributes:
        schema: how to ask for a schema: in OpenAI's way; in that of llama-cpp-python and others; not at all.
        logprobs: whether to ask for log probabilities.
        limit: name of the limit on tokens: reasoning models of OpenAI know only the newer one.
        temperature: whether to send one: the same models reject every one but their own.
        seed: whether to send one.
    """

    schema: Literal["json_schema", "json_object"] | None = "json_schema"
    logprobs: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    seed: bool = True

    def body(
        self,
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None,
        logprobs: bool,
        temperature: float | None,
        seed: int | None,
    ) -> dict[str, Any]:
        """The part of a request that depends on the features."""
        body: dict[str, Any] = {self.limit: max_tokens}
        if temperature is not None and self.temperature:
            body["temperature"] = temperature
        if seed is not None and self.seed:
            body["seed"] = seed
        if schema is not None and self.schema == "json_schema":
            described = {"name": "reply", "schema": dict(schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif schema is not None and self.schema == "json_object":
            body["response_format"] = {"type": "json_object", "schema": dict(schema)}
        if logprobs and self.logprobs:
            body |= {"logprobs": True, "top_logprobs": 5}
        return body

    def merged(self, other: Features) -> Features:
        """What neither lacks: two calls at the same time may have learnt different things."""
        styles = [self.schema, other.schema]
        newer = "max_completion_tokens" in (self.limit, other.limit)
        return Features(
            schema=None if None in styles else "json_object" if "json_object" in styles else "json_schema",
            logprobs=self.logprobs and other.logprobs,
            limit="max_completion_tokens" if newer else "max_tokens",
            temperature=self.temperature and other.temperature,
            seed=self.seed and other.seed,
        )

    def named(self, complaint: str, sent: Mapping[str, Any]) -> bool:
        """Whether a complaint names a feature that was sent.

        llama-cpp-python answers 500 to a ``response_format`` that it does not know; repeating it is no use.
        """
        text = complaint.lower()
        schema = "response_format" in sent and any(name in text for name in _SCHEMA_NAMES)
        return schema or ("logprobs" in sent and "logprobs" in text)

    def without(self, complaint: str, sent: Mapping[str, Any]) -> Features | None:
        """The features less the one that a server rejects.

        Each step takes one away, so that there are few; which one is read from the complaint, where it says.

        Args:
            complaint: body of a reply with status 400 or 422, or one that names a feature.
            sent: the request.

        Returns:
            ``None`` where nothing is left to take away, or the text was what is not accepted.
        """
        text = complaint.lower()
        if _FILTERED in text:
            return None
        less_schema = replace(self, schema="json_object" if self.schema == "json_schema" else None)
        has_schema, has_logprobs = "response_format" in sent, "logprobs" in sent
        if has_logprobs and "logprobs" in text:
            return replace(self, logprobs=False)
        if has_schema and any(word in text for word in _SCHEMA_WORDS):
            return less_schema
        if "max_completion_tokens" in text and "max_tokens" in sent:
            return replace(self, limit="max_completion_tokens")
        if "temperature" in sent and "temperature" in text:
            return replace(self, temperature=False)
        if "seed" in sent and "seed" in text:
            return replace(self, seed=False)
        # It does not say. What fewer servers know goes first.
        if has_logprobs:
            return replace(self, logprobs=False)
        return less_schema if has_schema else None
