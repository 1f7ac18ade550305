"""The list of scenarios and topologies, which is made once.

To make it every scenario is read and every topology imported, which takes seconds; so it is stored
in the user's cache folder, and made again when a file of ours or an installed package has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from actors.whole_files import write_text
from joins.errors import OutputError
from joins.machine.cache import user_folder
from joinsim import _PACKAGES

_ROOT = Path(__file__).resolve().parents[1]
_STORED = 4
"""Lists that are left in the folder: one per checkout that is in use."""
_SEARCHED = ("name", "title", "paper", "figure", "query", "topologies")
"""What words are looked for in; the meanings of a topology's parameters have too many."""


def listing() -> dict[str, Any]:
    """Return ``scenarios`` and ``topologies``, as ``joinsim list --json`` prints them."""
    folder = user_folder()
    path = folder / f"list-{_digest()}.json"
    with suppress(OSError, ValueError):
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return stored
    from joinsim._catalog import describe_all

    listed = describe_all()
    with suppress(OSError, OutputError):  # no folder to write to: it is made anew each time
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(listed))
        for old in sorted(folder.glob("list-*.json"), key=os.path.getmtime)[:-_STORED]:
            old.unlink()
    return listed


def search(*words: str) -> dict[str, list[dict[str, Any]]]:
    """Return the scenarios and the topologies that have all *words* in them.

    Parameters
    ----------
    words
        Words, or parts of words, of a name, a title, a paper, a query and so on; without any,
        everything is returned.

    Returns
    -------
    dict
        ``scenarios`` and ``topologies``: what is known of each, by name.

    Raises
    ------
    ConfigError
        Nothing has these words in it; the nearest names are given.

    Examples
    --------
    >>> import joinsim as js
    >>> [found["name"] for found in js.search("split", "turns")["topologies"]]
    ['split_join']
    """
    listed = listing()
    found = {kind: [one for one in ones if _has(one, words)] for kind, ones in listed.items()}
    if not any(found.values()):
        from difflib import get_close_matches

        from scenarios.scenario_files import ConfigError

        known = {
            word.strip(",.:;").lower()
            for ones in listed.values()
            for one in ones
            for word in f"{one['name']} {one['title']} {one['paper'] or ''}".split()
        }
        ones = [one for kind in listed.values() for one in kind]
        unknown = [word for word in words if not any(_has(one, [word]) for one in ones)]
        near = [name for word in unknown for name in get_close_matches(word.lower(), known, n=3)]
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        if not unknown:
            hint = ", though some have one"
        raise ConfigError(f"nothing has {' and '.join(map(repr, words))} in it{hint}")
    return found


def _has(one: dict[str, Any], words: Sequence[str]) -> bool:
    text = " ".join(str(one[key]) for key in _SEARCHED if one.get(key)).lower()
    return all(word.lower() in text for word in words)


def _digest() -> str:
    """Return a digest of all that the list is made from: our files, and packages' topologies."""
    digest = hashlib.sha256(
        repr(sorted(map(str, entry_points(group="joinsim.topologies")))).encode()
    )
    for package in ("joinsim", *_PACKAGES):
        for folder, _, names in sorted(os.walk(_ROOT / package)):
            for name in sorted(names):
                if name.endswith((".py", ".toml")):
                    file = os.stat(os.path.join(folder, name))
                    digest.update(f"{folder}/{name} {file.st_mtime_ns} {file.st_size}\n".encode())
    return digest.hexdigest()[:16]
