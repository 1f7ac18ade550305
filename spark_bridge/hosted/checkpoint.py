"""Which query a checkpoint is of: going on with another's would give an answer to neither."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_bridge.errors import DataError
from spark_bridge.hosted.whole_file import whole_file

_ABOUT = "joinsim.json"


def claim(checkpoint: Path, told: Mapping[str, Any]) -> bool:
    """Claim the folder *checkpoint* for a query, of which *told* says what it is.

    Returns
    -------
    bool
        Whether the query has been there before.

    Raises
    ------
    DataError
        The folder is of another query; the message says what differs.
    """
    about = checkpoint / _ABOUT
    told = json.loads(json.dumps(told))
    if not about.exists():
        if checkpoint.exists() and any(checkpoint.iterdir()):
            raise DataError(
                f"{checkpoint} is no checkpoint of joinsim's: there is no {_ABOUT} in it; name "
                "another folder"
            )
        checkpoint.mkdir(parents=True, exist_ok=True)
        with whole_file(about) as unfinished:
            unfinished.write_text(json.dumps(told, indent=1))
        return False
    before = json.loads(about.read_text())
    if told != before:
        where, theirs, ours = _difference(before, told)
        raise DataError(
            f"{checkpoint} is the checkpoint of another query: its {where} is "
            f"{_short(theirs)}, here it is {_short(ours)}; name another folder, or "
            "delete it to begin anew"
        )
    return True


def _difference(theirs: Any, ours: Any, *where: str) -> tuple[str, Any, Any]:
    """Return the first place where two unequal values of JSON differ, and what is there."""
    sides = [dict(enumerate(side)) if isinstance(side, list) else side for side in (theirs, ours)]
    if all(isinstance(side, dict) for side in sides):
        one, other = sides
        name = next(n for n in [*other, *one] if n not in one or one[n] != other.get(n))
        return _difference(one.get(name), other.get(name), *where, str(name))
    return ".".join(where), theirs, ours


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:200] + "..."
