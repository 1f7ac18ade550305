"""The command line as a whole: groups, what commands print on, exit codes and failures."""

from __future__ import annotations

import os
import select
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from scenarios.wall_clock import WallClock

if TYPE_CHECKING:
    from scenarios.many_runs import RunResult
    from scenarios.terminal.progress import Terminal

JOINS, PAPERS, SYSTEMS = "Joins", "Scenarios and papers", "Systems, data and machines"

_WHOLE = 1_000  # characters of a summary: it goes on in the next line, it is not cut

EXIT_PASS, EXIT_FAIL, EXIT_UNKNOWN, EXIT_STOPPED = range(4)
_FROM_BEST = (EXIT_PASS, EXIT_UNKNOWN, EXIT_FAIL, EXIT_STOPPED)

CLOCK: ContextVar[WallClock] = ContextVar("clock")
"""Measures the command, from when it began."""

_READER_GONE = 141
"""What a shell says of a program that SIGPIPE ended: nobody reads its output any more."""

_INTERRUPTED = 130  # the parser's code for Ctrl-C, of which it says nothing


class Finished(Exception):  # noqa: N818  (nothing went wrong)
    """A command is done and says with which exit code."""

    def __init__(self, code: int) -> None:
        self.code = code


class Grouped(TyperGroup):
    """Commands that are listed in groups, by ``rich_help_panel``."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group's commands, in their order."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                group = getattr(command, "rich_help_panel", None)
                heading = group if isinstance(group, str) else "Commands"
                line = (name, command.get_short_help_str(_WHOLE))
                groups.setdefault(heading, []).append(line)
        for heading, lines in groups.items():
            with formatter.section(heading):
                formatter.write_dl(lines)


app = typer.Typer(
    name="joinsim",
    help="A laboratory for distributed stream joins.\n\n"
    "Exit codes: 0 the verdict is pass, 1 fail, 2 unknown (nothing was tested, or pairs differ "
    "in a run that claims nothing of them), 3 no verdict (bad input or a crash).",
    no_args_is_help=True,
    cls=Grouped,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"joinsim {version('joinsim')}")
        raise typer.Exit


def _finish(code: int | None, **_: Any) -> None:
    """End with the exit code that a command returned; one that judges nothing returns none."""
    raise Finished(code or EXIT_PASS)


@app.callback(result_callback=_finish)
def _before(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Read the options that come before a command."""


def main(began_s: float | None = None) -> None:
    """Run the command line; every failure is one message and an exit code.

    *began_s* is when the person began to wait, of `time.monotonic`; by default now.
    """
    if not sys.warnoptions:  # what libraries warn of, a person at the terminal cannot mend
        warnings.simplefilter("ignore")
        os.environ.setdefault("PYTHONWARNINGS", "ignore")  # of Ray's and Spark's processes too
    if os.environ.get("COLUMNS") == "0":  # not known, which rich takes for a width
        del os.environ["COLUMNS"]
    with _guarded():
        try:
            CLOCK.set(WallClock(began_s))
            _check_utf8(sys.argv[1:])
            sys.argv[1:] = map(_at_home, sys.argv[1:])
            app()
        except Finished as finished:
            code = finished.code
        except SystemExit as stopped:
            if stopped.code == _INTERRUPTED:
                raise KeyboardInterrupt from None
            if isinstance(stopped.__context__, BrokenPipeError):  # as the parser and rich end then
                _end_unread()
            # The parser's own code for a wrong option is 2, which means something else here.
            code = EXIT_STOPPED if stopped.code else 0
        sys.stdout.flush()  # in time for a message where that fails
        sys.exit(code)


@contextmanager
def _guarded() -> Iterator[None]:
    """Turn failures into a message on stderr and exit code 3.

    What a person can mend is printed as it is; anything else is a fault of ours, and its traceback
    goes to a file. Where the reader of a pipe has gone, as ``head`` does, nothing is printed.
    """
    from actors.whole_files import FULL, output_error
    from joins.errors import JoinsimError

    try:
        yield
    except JoinsimError as error:
        _complain(_with_traceback(error) if error.shows_traceback else str(error), error)
    except KeyboardInterrupt as error:
        _complain("stopped", error)
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        _complain(
            f"there is not enough memory{what}: take fewer tuples, or a machine with more", error
        )
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # the last net: a person never sees a traceback
        if isinstance(error, BrokenPipeError) and _is_reader_gone():
            _end_unread()
        if isinstance(error, OSError) and error.errno in FULL:
            _complain(str(output_error(error)), error)
        elif isinstance(error.__cause__, KeyboardInterrupt):
            # While a class is made, as during imports, Python 3.11 wraps whatever is raised.
            _complain("stopped", error)
        else:
            _complain(_with_traceback(error), error)
    sys.exit(EXIT_STOPPED)


def _check_utf8(arguments: Iterable[str]) -> None:
    """Raise :exc:`JoinsimError` for an argument that is not in UTF-8, as what is written must be.

    Python has its other bytes as characters that cannot be encoded.
    """
    from joins.errors import JoinsimError

    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise JoinsimError(
                f"{argument}: it is not in UTF-8, in which all names and texts must be"
            ) from None


def _at_home(argument: str) -> str:
    """Return ``--option=~/file`` with the home folder, which a shell leaves as it is there."""
    option, equals, value = argument.partition("=")
    if option.startswith("--") and value.startswith("~/"):
        return option + equals + os.path.expanduser(value)
    return argument


def _is_reader_gone() -> bool:
    """Return whether nobody reads what is printed; other pipes, as Spark's, may have broken."""
    poll = select.poll()
    for stream in (sys.stdout, sys.stderr):
        poll.register(stream.fileno(), 0)  # errors are reported whatever is asked for
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))


def _end_unread() -> NoReturn:
    """End without a word: what is still printed, and what waits to be, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    sys.exit(_READER_GONE)


def _with_traceback(error: BaseException) -> str:
    """Return the *error*, which is the current exception, and where its traceback is."""
    return f"{type(error).__name__}: {error}\n{_save_traceback()}"


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

    from joins.errors import show_controls

    lines = [message]
    noted: BaseException | None = error
    while noted is not None:  # the parser puts an error of its own in place of Ctrl-C's
        lines += getattr(noted, "__notes__", ())
        noted = noted.__context__
    # Words are kept whole on a terminal; a file, or what reads a pipe, gets one line.
    console = Console(stderr=True, emoji=False, soft_wrap=not sys.stderr.isatty())
    # Where stderr cannot be written, which ends rich with an exit code of its own, ours says it.
    with suppress(OSError, SystemExit):
        console.print(
            show_controls("joinsim: " + "\n".join(lines)),
            style="bold red",
            markup=False,
            highlight=False,
        )


def exit_code(passed: bool | None) -> int:
    """Return the exit code of a verdict; None is unknown."""
    if passed is None:
        return EXIT_UNKNOWN
    return EXIT_PASS if passed else EXIT_FAIL


def worst_exit_code(results: Iterable[RunResult]) -> int:
    """Return the worst of several runs' exit codes; unknown when there is none.

    Runs that claim nothing and are not exact are measured beside those that do: they are left out.
    """
    judged = (one for one in results if not one.is_only_measured)
    codes = (EXIT_STOPPED if one.failure else exit_code(one.passed) for one in judged)
    return worst(codes)


def worst(codes: Iterable[int]) -> int:
    """Return the worst of several exit codes; unknown when there is none."""
    return max(codes, key=_FROM_BEST.index, default=EXIT_UNKNOWN)


def open_terminal(*, quiet: bool, watch: bool = False) -> Terminal:
    """Return what a command prints on; a *quiet* one prints nothing."""
    from actors.hosting.imports import leave_out_unused
    from actors.hosting.process_memory import keep_freed_memory

    leave_out_unused()
    keep_freed_memory()
    from scenarios.terminal.progress import Terminal

    return Terminal(quiet=quiet, watch=watch)


def print_json(value: dict[str, Any]) -> None:
    """Print *value* as the one JSON object on stdout, in characters of its encoding."""
    from scenarios.formatting import json_text

    plain = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    print(json_text(value, ascii_only=plain), end="")


def complete_scenario(incomplete: str) -> list[str]:
    """Return the scenarios whose names begin so, for the shell."""
    return _beginning("scenarios", incomplete)


def complete_topology(incomplete: str) -> list[str]:
    """Return the topologies whose names begin so, for the shell."""
    return _beginning("topologies", incomplete)


def _beginning(kind: str, incomplete: str) -> list[str]:
    from joinsim._listing import listing

    return [one["name"] for one in listing()[kind] if one["name"].startswith(incomplete)]
