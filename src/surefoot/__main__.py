"""``python -m surefoot`` is the command ``surefoot``."""

from __future__ import annotations

from surefoot.cli import app

if __name__ == "__main__":
    app(prog_name="surefoot")
