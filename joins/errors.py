"""The base of every error that a person can mend, and that of data."""

from __future__ import annotations


class JoinsimError(Exception):
    """Something that the user can mend; its message says what was wrong, where, what is allowed.

    Every package derives its own errors from it, so that a caller catches one class.
    """


class DataError(JoinsimError):
    """The data, or a request about it, is not usable; the message names file and remedy."""
