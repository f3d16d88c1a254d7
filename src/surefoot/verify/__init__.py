"""The check of an answer, from its text to the report."""

from __future__ import annotations

from surefoot.verify.verifier import (
    ABLATIONS,
    Verifier,
)

__all__ = [
    "ABLATIONS",
    "Verifier",
]
