"""A first version of a system of one's own: the files in ``starter/``, under another name."""

from __future__ import annotations

import re
import shutil
import sys
from importlib.metadata import packages_distributions
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path

from actors.whole_files import at_home, write_text, writing
from scenarios.scenario_files import ConfigError
from topologies import TOPOLOGIES

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "my_join.py": "src/my_join.py",
    "test_my_join.py": "test_my_join.py",
}
"""Each file, to where it is written. A folder beside that has the module's name would be imported
in its place, in any Python that is started there: so the module lies deeper."""

_NAME_MAX = 100  # a name of a file has 255 bytes


def new_topology(name: str, out: str | Path | None = None) -> list[Path]:
    """Write a package with a working topology, its test and its entry point; return its files.

    Parameters
    ----------
    name
        Of the topology, the module and the package, such as ``my_join``.
    out
        Where to write it, a folder that does not exist; by default *name*, here.

    Raises
    ------
    ConfigError
        The name is not usable or taken, or the folder exists.
    OutputError
        The folder cannot be written to.

    Examples
    --------
    >>> import tempfile, joinsim as js
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in js.new_topology("my_join", f"{folder}/my_join")]
    ['pyproject.toml', 'my_join.py', 'test_my_join.py']
    """
    fits = re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) and len(name) <= _NAME_MAX
    if not fits or iskeyword(name):
        raise ConfigError(
            f"{name!r}: a topology is named in lower case, as in my_join or join2, of at most "
            f"{_NAME_MAX} letters, and by no word of Python's own"
        )
    if name in TOPOLOGIES:
        raise ConfigError(f"{name!r}: there is a topology of this name; choose another")
    if name in sys.stdlib_module_names or name in packages_distributions():
        raise ConfigError(f"{name!r}: there is a module of this name; choose another")
    folder = at_home(out or name)
    if folder.exists():
        raise ConfigError(f"{folder} exists; choose another folder")
    kind = "".join(word.capitalize() for word in name.split("_"))
    written = []
    try:
        for file, place in _FILES.items():
            text = files("joinsim").joinpath("starter", file).read_text(encoding="utf-8")
            text = text.replace("MyJoin", kind).replace("my_join", name)
            path = folder / place.replace("my_join", name)
            with writing(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
            written.append(path)
    except BaseException:  # a part of a package is of no use, and in the way of the next try
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return written
