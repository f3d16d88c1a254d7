"""``python -m training.rerank``: data, train, evaluate, fuse, export."""

from __future__ import annotations

import argparse

from training.rerank import commands


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.rerank", description=__doc__)
    commands.register(parser.add_subparsers(required=True, metavar="COMMAND"))
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
