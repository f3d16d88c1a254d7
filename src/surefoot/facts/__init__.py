"""Numbers, dates, names and negation: whether a claim and its evidence agree on the facts.

A check beside the language model, in plain Python: it can only lower a verdict. English only.
"""

from __future__ import annotations

from surefoot.facts.compare import compare_facts
from surefoot.facts.extract import extract_facts
from surefoot.facts.records import DateValue, Fact, FactCheck, FactMismatch, FactStatus

__all__ = ["DateValue", "Fact", "FactCheck", "FactMismatch", "FactStatus", "compare_facts", "extract_facts"]
