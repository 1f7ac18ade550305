"""What can go wrong with data and with engines; every message is meant for a person."""

from __future__ import annotations

from joins.errors import DataError as DataError
from joins.errors import JoinsimError


class EngineFailed(JoinsimError):  # noqa: N818  (reads as what happened, like KeyboardInterrupt)
    """An engine refused or failed a query; the message is its own."""


class EngineUnavailable(EngineFailed):
    """Spark or Flink cannot start on this machine; the message names what is missing.

    Examples
    --------
    >>> import joinsim as js
    >>> def prepared(file):
    ...     try:
    ...         return js.prepare(file)
    ...     except js.EngineUnavailable:
    ...         return file  # `run` reads Parquet without Spark
    """


class SparkFailed(EngineFailed):
    """Spark refused or failed a query; the message is Spark's own."""


def one_line(error: BaseException) -> str:
    """Return Spark's own message without its Java stack trace, as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # The innermost cause carries the error class in brackets; the lines before it are wrapping.
    bracketed = [line for line in lines if "[" in line and not line.startswith("at ")]
    causes = [line for line in bracketed if line.startswith("Caused by:")]
    named = [line for line in bracketed if line.partition("[")[2][:1].isupper()]
    line = (causes[-1:] or named or lines)[0]
    start = line.find("[")
    if start > 0 and line[start + 1 : start + 2].isupper():
        line = line[start:]
    return line.partition(" SQLSTATE:")[0]
