"""Text into segments and sentences with exact offsets."""

from __future__ import annotations

from surefoot.segment.answer import Segment, segment_answer
from surefoot.segment.lines import sentence_spans
from surefoot.segment.plain import plain_text

__all__ = ["Segment", "plain_text", "segment_answer", "sentence_spans"]
