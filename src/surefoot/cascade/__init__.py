"""Local verdicts first, and a judge only for the claims that the local model leaves uncertain.

What the local model is sure of stands. Inside the review band the judge is asked claim by claim, the most
uncertain first, for as long as the budget lasts. Whatever goes wrong with the judge leaves the local
verdict, and says so: the report is then ``degraded``.

The idea and its effect (60 to 70% of the cost saved at equal accuracy) are those of cascades of checkers;
``benchmarks/cascade.py`` measures both for a judge of your own.
"""

from __future__ import annotations

from surefoot.cascade.core import Cascade
from surefoot.cascade.records import CascadeReport, Decision

__all__ = ["Cascade", "CascadeReport", "Decision"]
