"""What can go wrong in hosting, apart from the libraries that do it."""

from __future__ import annotations

from joins.errors import JoinsimError


class RayUnavailableError(JoinsimError):
    """Ray could not be started or reached, or went away; says where and what to do."""
