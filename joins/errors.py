"""Base classes of errors that the user can fix, and helpers for their messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches


class JoinsimError(Exception):
    """An error that the user can fix; its message says what was wrong, where, what is allowed.

    Every package derives its own errors from it, so that a caller catches one class.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.run("SELECT * FROM A", {})
    ... except js.JoinsimError as error:
    ...     print(isinstance(error, js.QueryError))
    True
    """

    shows_traceback = False
    """Whether its traceback helps, too, as what it is about is code."""


class DataError(JoinsimError):
    """The data, or a request about it, is not usable; the message names file and remedy.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.diff("runs/first", "runs/second")
    ... except js.DataError as error:
    ...     print(error)
    there is no folder runs/first: name one that a run has written
    """


class OutputError(JoinsimError):
    """A file or folder that cannot be written to; the message names it and the remedy.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.draw("split_join", "/dev/null/drawing.svg")
    ... except js.OutputError as error:
    ...     print(str(error).partition(":")[0])
    cannot write to /dev/null/drawing.svg
    """


_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"} | {
    "\x7f": "\u2421"
}
_CONTROLS = re.compile(f"[{''.join(_PICTURES)}]")


def show_controls(text: str) -> str:
    r"""Return *text* with control characters, which a name may have, as the pictures of them.

    A terminal would obey them, and a page must not have them. Line breaks and tabs stay.

    >>> show_controls("a\x1bb")
    'a␛b'
    """
    # By a pattern, as str.translate takes a tenth of a second for a page of a megabyte.
    return _CONTROLS.sub(lambda found: _PICTURES[found[0]], text)


def suggest(name: str, known: Iterable[str], opening: str = "there are") -> str:
    """Return what to answer an unknown *name*: the nearest of those *known*, and then all of them.

    >>> suggest("jiter", ["latency", "jitter"])
    "did you mean 'jitter'? there are latency, jitter"
    """
    listed = list(known)
    near = get_close_matches(name, listed, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}{opening} {', '.join(listed) or 'none'}"
