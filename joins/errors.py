"""The base of every error that the user can fix, and those of data and of output."""

from __future__ import annotations


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


class DataError(JoinsimError):
    """The data, or a request about it, is not usable; the message names file and remedy.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.diff("runs/first", "runs/second")
    ... except js.DataError as error:
    ...     print(error)
    runs/first/trace.parquet is not there: name two directories that runs have written
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
