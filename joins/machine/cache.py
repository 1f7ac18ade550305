"""Cache folders, for what takes long to make: machine code, scripts, lists."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "JOINSIM_CACHE"
"""Environment variable that names another folder for machine code."""


def user_folder() -> Path:
    """Return our part of the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joinsim"


def cache_folder() -> Path:
    """Return the folder for machine code: `CACHE_VARIABLE`'s, else the user's."""
    own = os.environ.get(CACHE_VARIABLE)
    return Path(own) if own else user_folder() / "kernels"
