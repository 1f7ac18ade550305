"""Machine code is stored for all processes, never outlives its source, and counts from 0 on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from joins.machine.compiling import source_digest

_CALLEE = """
from joins.machine.compiling import inlined

@inlined
def add(value: int) -> int:
    return value + {more}
"""
_CALLER = """
from joins.machine.compiling import kernel
from callee import add

@kernel
def twice(value: int) -> int:
    return add(add(value))
"""
_RECORD = """
from typing import NamedTuple
import numpy as np
from numba.extending import overload
from steps import look_up

class Tree(NamedTuple):
    keys: np.ndarray

@overload(look_up, inline="always")
def _(index, place):
    if getattr(index, "instance_class", None) is Tree:
        return lambda index, place: index.keys[place] + {more}
"""
_STEPS = """
from joins.machine.compiling import kernel

def look_up(index, place):
    ...

@kernel
def probe(index, place):
    return look_up(index, place)
"""
_CALLING_NUMBA = """
import numpy as np
from joins.machine.compiling import allocating

@allocating
def dot(name, values, expected_hash):
    assert hash(name + 's') == expected_hash
    return int(np.dot(values, np.sort(values))) + np.random.randint(1)
"""
_INDEXING = """
import numpy as np
from joins.machine.compiling import inlined, kernel

@inlined
def read(table, row, column):
    return table[row, column]

@kernel
def run(column, table, at, how):
    if how == 0:
        return column[at]
    if how == 1:
        column[at] = 1
    elif how == 2:
        column[at] += 1
    elif how == 3:
        return read(table, 0, at)
    else:
        table[at, 0] = 1
    return 0

refused = 0
for how in range(5):
    run(np.zeros(3, np.int64), np.zeros((3, 3), np.int64), 2, how)
    try:
        run(np.zeros(3, np.int64), np.zeros((3, 3), np.int64), -1, how)
    except IndexError:
        refused += 1
"""
_TIMED = """
import numpy as np
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    {code}
print(result, len(compiled.buffer))
"""


def _run(folder: Path, code: str) -> tuple[int, bool]:
    """Run *code* in a process of its own; return its result, and whether anything was compiled."""
    path = f"{folder}{os.pathsep}{Path(__file__).parents[3]}"
    environment = os.environ | {"PYTHONPATH": path, "JOINSIM_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", _TIMED.format(code=code)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    result, compilations = done.stdout.split()
    return int(result), int(compilations) > 0


def test_an_edited_callee_changes_its_callers(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(_CALLER)
    (tmp_path / "callee.py").write_text(_CALLEE.format(more=1))
    code = "from caller import twice; result = twice(10)"
    assert _run(tmp_path, code) == (12, True)
    assert _run(tmp_path, code) == (12, False)
    (tmp_path / "callee.py").write_text(_CALLEE.format(more=5))
    assert _run(tmp_path, code) == (20, True)


@pytest.mark.parametrize(
    "imported", ["from .callee import add", "from . import callee; add = callee.add"]
)
def test_an_edited_callee_changes_its_callers_in_its_package(tmp_path: Path, imported: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").touch()
    caller = _CALLER.replace("from callee import add", imported.replace("; ", "\n"))
    (tmp_path / "own" / "caller.py").write_text(caller)
    for more in (1, 5):
        (tmp_path / "own" / "callee.py").write_text(_CALLEE.format(more=more))
        code = "from own.caller import twice; result = twice(10)"
        assert _run(tmp_path, code) == (10 + 2 * more, True)


def test_an_edited_overload_changes_the_kernels_of_its_record(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(_STEPS)
    (tmp_path / "tree.py").write_text(_RECORD.format(more=1))
    code = "import tree, steps; result = steps.probe(tree.Tree(np.arange(5)), 3)"
    assert _run(tmp_path, code) == (4, True)
    assert _run(tmp_path, code) == (4, False)
    (tmp_path / "tree.py").write_text(_RECORD.format(more=2))
    assert _run(tmp_path, code) == (5, True)


def test_a_record_class_of_another_checkout_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(_STEPS)
    for name, more in (("Tree", 1), ("Forest", 2), ("Tree", 1)):
        (tmp_path / "tree.py").write_text(_RECORD.replace("Tree", name).format(more=more))
        code = f"import tree, steps; result = steps.probe(tree.{name}(np.arange(5)), 3)"
        assert _run(tmp_path, code)[0] == 3 + more
    assert _run(tmp_path, code) == (4, False)


def test_stored_code_finds_the_functions_of_numba_that_it_calls(tmp_path: Path) -> None:
    """Hashes, new arrays, random numbers and BLAS, in a process that compiles nothing."""
    (tmp_path / "calling.py").write_text(_CALLING_NUMBA)
    code = "from calling import dot; result = dot('trip', np.arange(4.0), hash('trips'))"
    assert _run(tmp_path, code) == (14, True)
    assert _run(tmp_path, code) == (14, False)


def test_where_bounds_are_checked_no_negative_index_counts_from_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    (tmp_path / "indexing.py").write_text(_INDEXING)
    assert _run(tmp_path, "from indexing import refused as result") == (5, True)


def test_two_checkouts_share_machine_code(tmp_path: Path) -> None:
    digests = set()
    for checkout in ("here", "there"):
        folder = tmp_path / checkout
        folder.mkdir()
        (folder / "caller.py").write_text(_CALLER)
        (folder / "callee.py").write_text(_CALLEE.format(more=1))
        digests.add(source_digest("caller", str(folder / "caller.py")))
    assert len(digests) == 1
