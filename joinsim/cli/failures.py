"""Runs the command line: every failure is one message on stderr and an exit code."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from joinsim.cli.app import app
from joinsim.cli.output import CLOCK, EXIT_STOPPED, Finished
from scenarios.wall_clock import WallClock

_INTERRUPTED = 130  # the parser's code for Ctrl-C, of which it says nothing


def main(began_s: float | None = None) -> None:
    """Run the command line; every failure is one message and an exit code.

    *began_s* is when the person began to wait, of `time.monotonic`; by default now.
    """
    if not sys.warnoptions:  # what libraries warn of, a person at the terminal cannot mend
        warnings.simplefilter("ignore")
        os.environ.setdefault("PYTHONWARNINGS", "ignore")  # of Ray's and Spark's processes too
    with _guarded():
        try:
            CLOCK.set(WallClock(began_s))
            app()
        except Finished as finished:
            code = finished.code
        except SystemExit as stopped:
            if stopped.code == _INTERRUPTED:
                raise KeyboardInterrupt from None
            # The parser's own code for a wrong option is 2, which means something else here.
            code = EXIT_STOPPED if stopped.code else 0
        sys.stdout.flush()  # in time for a message where that fails
        sys.exit(code)


@contextmanager
def _guarded() -> Iterator[None]:
    """Turn failures into a message on stderr and exit code 3.

    What a person can mend is printed as it is; anything else is a fault of ours, and its traceback
    goes to a file.
    """
    from actors.whole_files import FULL, output_error
    from joins.errors import JoinsimError

    try:
        yield
    except JoinsimError as error:
        _complain(str(error), error)
    except KeyboardInterrupt as error:
        _complain("stopped", error)
    except Exception as error:  # the last net: a person never sees a traceback
        if isinstance(error, OSError) and error.errno in FULL:
            _complain(str(output_error(error)), error)
        elif isinstance(error.__cause__, KeyboardInterrupt):
            # While a class is made, as during imports, Python 3.11 wraps whatever is raised.
            _complain("stopped", error)
        else:
            _complain(f"{type(error).__name__}: {error}\n{_save_traceback()}", error)
    sys.exit(EXIT_STOPPED)


def _save_traceback() -> str:
    """Write the traceback of the current exception to a file, and return where it is."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="joinsim-", suffix=".txt", delete=False
        ) as file:
            traceback.print_exc(file=file)
    except OSError as error:
        return f"The traceback could not be saved: {error.strerror}"
    return f"The traceback is in {file.name}"


def _complain(message: str, error: BaseException) -> None:
    """Print a *message* on stderr, and the notes on the *error* that it is of, or came from."""
    from rich.console import Console

    lines = [message]
    noted: BaseException | None = error
    while noted is not None:  # the parser puts an error of its own in place of Ctrl-C's
        lines += getattr(noted, "__notes__", ())
        noted = noted.__context__
    # Words are kept whole on a terminal; a file, or what reads a pipe, gets one line.
    Console(stderr=True, soft_wrap=not sys.stderr.isatty()).print(
        "joinsim: " + "\n".join(lines), style="bold red", markup=False, highlight=False
    )
