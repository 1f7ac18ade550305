"""The console command, also as ``python -m joinsim``.

Ctrl-C may come in the seconds before everything is imported. SIGTERM, and SIGHUP of a terminal that
closes, are treated like it: otherwise the person who ends the command would have to end what it has
started. It may also come where Python can raise nothing, as in what numba calls from C for every
kernel that it loads, or where what is raised gets lost, as in what modules of Cython call while
they are imported; then it comes again.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import signal
import sys
import time
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

_COLLECT_AFTER = 500_000
"""Objects made before Python looks for cycles among them. It looks after 700, and imports make
hundreds of thousands, all of which stay."""

_AGAIN_S = 0.01
"""After so long a lost Ctrl-C comes again; most callbacks have ended by then."""

_EXIT_STOPPED = 3  # `joinsim.cli.command_line.EXIT_STOPPED`, which must not be imported yet


def main() -> None:
    """Run the command line, see `joinsim.cli.command_line.main`."""
    _ready_streams()
    gc.set_threshold(_COLLECT_AFTER)
    # Otherwise the interpreter's end looks for cycles among all of them, several times: 0.4 s.
    atexit.register(gc.freeze)
    sys.unraisablehook = _interrupt_again
    signal.signal(signal.SIGTERM, _interrupt)
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as for a shell's background jobs, or nohup
            signal.signal(number, _interrupt)
    try:
        from joinsim.cli.command_line import main as run
        from scenarios.wall_clock import process_began_s

        run(process_began_s())
        return
    except KeyboardInterrupt:  # before `run` could report it
        print("joinsim: stopped", file=sys.stderr)
    except SystemExit as ended:
        if ended.code != _EXIT_STOPPED:
            raise
    # Interrupted while it connects, Ray leaves threads that the interpreter's end crashes on.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # it may be what could not be written to
            stream.flush()
    os._exit(_EXIT_STOPPED)


def _ready_streams() -> None:
    """Open the standard streams that are closed, as by ``>&-``, and let no character stop a print.

    A character that an encoding does not have is printed as its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in their numbers' order
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  (stays open)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise what Ctrl-C raises; later, where a module that is not Python's would lose it."""
    if _begins_extension(frame):
        _thread.start_new_thread(_interrupt_soon, ())
    else:
        raise KeyboardInterrupt


def _begins_extension(frame: FrameType | None) -> bool:
    """Return whether *frame* is of a function that an extension module calls as it is imported."""
    below = None
    while frame is not None and frame.f_code.co_name != "_call_with_frames_removed":
        below, frame = frame, frame.f_back
    return frame is not None and below is not None and below.f_code.co_name != "<module>"


def _interrupt_again(lost: UnraisableHookArgs) -> None:
    """Report an exception that could not be raised, as Python does; but a Ctrl-C comes again."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_soon, ())
    else:
        sys.__unraisablehook__(lost)


def _interrupt_soon() -> None:
    time.sleep(_AGAIN_S)
    _thread.interrupt_main(signal.SIGTERM)  # a shell's background jobs ignore the other


if __name__ == "__main__":
    main()
