"""What can go wrong between a raw file and a prepared stream, in words for people."""

from __future__ import annotations

from joins.errors import JoinsimError


class DataError(JoinsimError):
    """The data, or what was asked of it, is not usable; the message names file and remedy."""


class EngineUnavailable(JoinsimError):  # noqa: N818  (reads as what happened, like KeyboardInterrupt)
    """Spark or Flink cannot start on this machine; the message names what is missing."""


class SparkFailed(Exception):  # noqa: N818
    """Spark refused or failed a query; the message is Spark's own."""


def one_line(error: BaseException) -> str:
    """Return Spark's own complaint without its Java stack trace, as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # The innermost cause carries the error class in brackets; the lines before it are wrapping.
    told = [line for line in lines if "[" in line and not line.startswith("at ")]
    causes = [line for line in told if line.startswith("Caused by:")]
    line = (causes[-1:] or [t for t in told if t.partition("[")[2][:1].isupper()] or lines)[0]
    start = line.find("[")
    if start > 0 and line[start + 1 : start + 2].isupper():
        line = line[start:]
    return line.partition(" SQLSTATE:")[0]
