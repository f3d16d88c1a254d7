"""surefoot shows which sentences of an LLM's answer stand on their sources."""

from __future__ import annotations

__version__ = "0.1.0"
