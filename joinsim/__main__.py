"""The console command, also as ``python -m joinsim``.

Ctrl-C may come in the seconds before everything is imported. SIGTERM, and SIGHUP of a terminal that
closes, are treated like it: otherwise the person who ends the command would have to end what it has
started.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress

_COLLECT_AFTER = 500_000
"""Objects made before Python looks for cycles among them. It looks after 700, and imports make
hundreds of thousands, all of which stay."""

_EXIT_STOPPED = 3  # `joinsim.cli.output.EXIT_STOPPED`, which must not be imported yet


def main() -> None:
    """Run the command line, see `joinsim.cli.failures.main`."""
    gc.set_threshold(_COLLECT_AFTER)
    # Otherwise the interpreter's end looks for cycles among all of them, several times: 0.4 s.
    atexit.register(gc.freeze)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # which is how nohup has it
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        from joinsim.cli.failures import main as run
        from scenarios.wall_clock import process_began_s
    except KeyboardInterrupt:
        print("joinsim: stopped", file=sys.stderr)
        sys.exit(_EXIT_STOPPED)
    try:
        run(process_began_s())
    except SystemExit as ended:
        if ended.code != _EXIT_STOPPED:
            raise
        # Interrupted while it connects, Ray leaves threads that the interpreter's end crashes on.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # it may be what could not be written to
                stream.flush()
        os._exit(_EXIT_STOPPED)


if __name__ == "__main__":
    main()
