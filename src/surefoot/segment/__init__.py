"""Text into segments and sentences with exact offsets."""

from __future__ import annotations

from surefoot.segment.answer import (
    Segment,
    segment_answer,
    sentence_spans,
)

__all__ = [
    "Segment",
    "segment_answer",
    "sentence_spans",
]
