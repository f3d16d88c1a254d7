"""surefoot shows which sentences of an LLM's answer stand on their sources.

>>> from surefoot import Verifier
>>> report = Verifier().verify(answer, sources)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.errors import (
    ConfigurationError,
    DownloadRefusedError,
    EndpointError,
    InputError,
    MissingExtraError,
    ModelError,
    ModelIntegrityError,
    ModelNotFoundError,
    SurefootError,
)
from surefoot.schema import Citation, Claim, Evidence, Source, TruthfulnessReport, Verdict

if TYPE_CHECKING:
    from surefoot.verify import Verifier

__version__ = "0.1.0"

__all__ = [
    "Citation",
    "Claim",
    "ConfigurationError",
    "DownloadRefusedError",
    "EndpointError",
    "Evidence",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "ModelIntegrityError",
    "ModelNotFoundError",
    "Source",
    "SurefootError",
    "TruthfulnessReport",
    "Verdict",
    "Verifier",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Load what needs ONNX Runtime only when it is asked for."""
    if name == "Verifier":
        from surefoot.verify import Verifier

        return Verifier
    raise AttributeError(f"module 'surefoot' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names, the lazy ones included."""
    return sorted({*globals(), *__all__})
