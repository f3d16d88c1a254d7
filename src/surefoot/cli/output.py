"""What every command shares: exit codes, writing, errors as one line, and a progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

import typer

from surefoot.errors import (
    DownloadRefusedError,
    EndpointError,
    ModelError,
    ModelNotFoundError,
    SurefootError,
)
from surefoot.report.wording import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "FAILED",
    "FINE",
    "UNDER_THRESHOLD",
    "WRONG_INPUT",
    "errors",
    "fail",
    "progress",
    "say",
    "show",
    "write",
]

FINE: Final = 0
UNDER_THRESHOLD: Final = 1
WRONG_INPUT: Final = 2
FAILED: Final = 3


def show(render: Callable[[Console], None]) -> None:
    """Let ``render`` print to a console, and write what it printed in one go.

    Capturing first keeps a reader that closes the pipe early (``| head``) from changing the exit code.
    """
    from rich.console import Console

    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        render(console)
    write(capture.get())


def write(text: str) -> None:
    """Write to standard output; what its encoding lacks is escaped, and a closed pipe is no error."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, errors="backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads on. Python would complain once more when it closes the stream at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """One line on standard error."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    text = f"surefoot: {printable(message)}\n"
    sys.stderr.write(text.encode(encoding, errors="backslashreplace").decode(encoding))


def fail(message: str, code: int) -> NoReturn:
    """Say what is wrong, and exit."""
    say(f"error: {message}")
    raise typer.Exit(code)


@contextmanager
def errors() -> Iterator[None]:
    """Turn exceptions into one line on standard error and an exit code; SUREFOOT_DEBUG=1 shows them whole."""
    if os.environ.get("SUREFOOT_DEBUG") == "1":
        yield
        return
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except (ModelNotFoundError, DownloadRefusedError) as error:
        fail(str(error), WRONG_INPUT)
    except (ModelError, EndpointError) as error:
        fail(str(error), FAILED)
    except SurefootError as error:
        fail(str(error), WRONG_INPUT)
    except MemoryError:
        fail("out of memory", FAILED)
    except Exception as error:
        hint = "this is a defect of surefoot; SUREFOOT_DEBUG=1 shows where"
        say(f"error: {type(error).__name__}: {error}; {hint}")
        raise typer.Exit(FAILED) from error


@contextmanager
def progress(task: str = "checking", *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, for people only, once the work has taken a second."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    import time

    from rich.console import Console
    from rich.progress import Progress

    began = time.monotonic()
    bar = Progress(console=Console(file=sys.stderr), transient=True)
    bar_task = bar.add_task(task)

    def step(done: int, total: int) -> None:
        if time.monotonic() - began > 1.0:
            bar.start()
            bar.update(bar_task, completed=done, total=total)

    try:
        yield step
    finally:
        bar.stop()
