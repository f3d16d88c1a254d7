"""surefoot shows which sentences of an LLM's answer stand on their sources.

>>> from surefoot import Verifier
>>> report = Verifier().verify(answer, sources)  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot.errors import (
    BudgetExceededError,
    ConfigurationError,
    DownloadRefusedError,
    EndpointError,
    EndpointRejectedError,
    EndpointReplyError,
    EndpointTimeoutError,
    EndpointUnavailableError,
    InputError,
    MissingExtraError,
    ModelError,
    ModelIntegrityError,
    ModelNotFoundError,
    SurefootError,
)
from surefoot.schema import Citation, Claim, Evidence, Source, TruthfulnessReport, Verdict

if TYPE_CHECKING:
    from surefoot.judge import Judge
    from surefoot.pipeline import Pipeline
    from surefoot.rerank import RankedSource, Reranker
    from surefoot.retrieve import Index
    from surefoot.verify import Verifier

__version__ = "0.1.0"

__all__ = [
    "BudgetExceededError",
    "Citation",
    "Claim",
    "ConfigurationError",
    "DownloadRefusedError",
    "EndpointError",
    "EndpointRejectedError",
    "EndpointReplyError",
    "EndpointTimeoutError",
    "EndpointUnavailableError",
    "Evidence",
    "Index",
    "InputError",
    "Judge",
    "MissingExtraError",
    "ModelError",
    "ModelIntegrityError",
    "ModelNotFoundError",
    "Pipeline",
    "RankedSource",
    "Reranker",
    "Source",
    "SurefootError",
    "TruthfulnessReport",
    "Verdict",
    "Verifier",
    "__version__",
]

_LAZY = {
    "Index": "surefoot.retrieve",
    "Judge": "surefoot.judge",
    "Pipeline": "surefoot.pipeline",
    "RankedSource": "surefoot.rerank",
    "Reranker": "surefoot.rerank",
    "Verifier": "surefoot.verify",
}


def __getattr__(name: str) -> Any:
    """Load what needs ONNX Runtime only when it is asked for."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'surefoot' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names, the lazy ones included."""
    return sorted({*globals(), *__all__})
