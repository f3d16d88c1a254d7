"""Checks of option values, with one wording for all packages."""

from __future__ import annotations

from numbers import Integral, Real

from surefoot.errors import ConfigurationError

__all__ = ["check_positive", "check_share", "check_whole"]


def check_whole(least: int = 1, /, *, optional: bool = False, **options: object) -> None:
    """Refuse options that are not whole numbers of at least ``least``; with ``optional``, accept ``None``.

    Raises:
        ConfigurationError: names the option and its value.
    """
    for name, value in options.items():
        if optional and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise ConfigurationError(f"{name} must be a whole number of at least {least}, not {value!r}")


def check_share(**options: object) -> None:
    """Refuse options that are neither ``None`` nor between 0 and 1.

    Raises:
        ConfigurationError: names the option and its value.
    """
    for name, value in options.items():
        if value is not None and not (isinstance(value, Real) and 0 <= float(value) <= 1):
            raise ConfigurationError(f"{name} must be between 0 and 1, not {value!r}")


def check_positive(**options: object) -> None:
    """Refuse options that are neither ``None`` nor a number above 0.

    Raises:
        ConfigurationError: names the option and its value.
    """
    for name, value in options.items():
        if value is not None and not (isinstance(value, Real) and float(value) > 0):
            raise ConfigurationError(f"{name} must be a positive number, not {value!r}")
