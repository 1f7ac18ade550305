"""The base of every error that the user can fix, and those of data and of output."""

from __future__ import annotations


class JoinsimError(Exception):
    """An error that the user can fix; its message says what was wrong, where, what is allowed.

    Every package derives its own errors from it, so that a caller catches one class.
    """


class DataError(JoinsimError):
    """The data, or a request about it, is not usable; the message names file and remedy."""


class OutputError(JoinsimError):
    """A file or folder that cannot be written to; the message names it and the remedy."""
