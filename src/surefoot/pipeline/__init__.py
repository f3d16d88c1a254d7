"""Retrieve, rerank, generate, verify: from a question to an answer that says what it stands on.

>>> from surefoot import Index, Pipeline
>>> pipeline = Pipeline(Index.load("index"))  # doctest: +SKIP
>>> result = pipeline.ask("How long may I return something?")  # doctest: +SKIP
"""

from __future__ import annotations

from surefoot.pipeline.core import MIN_EVIDENCE, Pipeline
from surefoot.pipeline.extract import ExtractiveAnswerer, evidence_strength
from surefoot.pipeline.prompt import PROMPT_VERSION, REFUSAL, build_prompt
from surefoot.pipeline.records import (
    Draft,
    PipelineResult,
    Quote,
    Stage,
    StageCode,
    StageError,
    StageEvent,
    StageNote,
)

__all__ = [
    "MIN_EVIDENCE",
    "PROMPT_VERSION",
    "REFUSAL",
    "Draft",
    "ExtractiveAnswerer",
    "Pipeline",
    "PipelineResult",
    "Quote",
    "Stage",
    "StageCode",
    "StageError",
    "StageEvent",
    "StageNote",
    "build_prompt",
    "evidence_strength",
]
