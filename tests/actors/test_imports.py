from __future__ import annotations

import subprocess
import sys


def test_pyarrow_converts_without_pandas_which_can_be_imported_later() -> None:
    """In a process of its own: this one has imported pandas already."""
    program = """
import sys
from actors.hosting.imports import leave_out_unused
leave_out_unused()
import numpy as np, pyarrow as pa
assert pa.table({"a": np.arange(3), "b": [True, None, False]})["b"].to_pylist()[1] is None
assert pa.array(np.arange(3)).to_numpy().tolist() == [0, 1, 2]
print("pandas" in sys.modules)
import pandas
print(pandas.DataFrame({"a": [1]}).shape, pa.table({"a": [1]}).to_pandas().shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout.split("\n")[:2], done.stderr) == (["False", "(1, 1) (1, 1)"], "")


def test_kernels_are_compiled_without_scipy_which_can_be_imported_later() -> None:
    program = """
import sys
import numpy as np, numba
from actors.hosting.imports import leave_out_unused
leave_out_unused()
assert numba.njit(lambda x: x.sum())(np.arange(4)) == 6
print("scipy.linalg" in sys.modules)
assert numba.njit(lambda x: x @ x)(np.arange(4.0)) == 14
assert np.allclose(numba.njit(lambda x: np.cov(x))(np.eye(2)), np.cov(np.eye(2)))
import scipy.stats
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_what_is_imported_meanwhile_is_there_and_what_fails_is_silent() -> None:
    program = """
import sys, threading
from actors.hosting.imports import import_meanwhile
import_meanwhile("no.such.module", "json.tool")
import_meanwhile("colorsys", "sched")
import_meanwhile("sys")
for thread in threading.enumerate()[1:]:
    thread.join()
print("json.tool" in sys.modules, "colorsys" in sys.modules, "sched" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("True True True\n", "")
