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
    differing = [name for name in told if told[name] != before.get(name)]
    if differing:
        name = differing[0]
        raise DataError(
            f"{checkpoint} is the checkpoint of another query: its {name} is "
            f"{_short(before.get(name))}, here it is {_short(told[name])}; name another folder, or "
            "delete it to begin anew"
        )
    return True


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:200] + "..."
