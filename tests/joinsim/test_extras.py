"""The base install joins tables inline; whatever needs an extra names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_EXTRAS = """
import importlib.machinery, json, sys
from importlib import metadata

absent = set(sys.argv[1].split(","))
find_spec = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = staticmethod(
    lambda name, *rest: None if name.partition(".")[0] in absent else find_spec(name, *rest)
)

Distribution, from_name = metadata.Distribution, metadata.Distribution.from_name

def installed(name):
    if name in absent:
        raise metadata.PackageNotFoundError(name)
    return from_name(name)

Distribution.from_name = staticmethod(installed)

import numpy as np
import joinsim as js

query = "SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL '1' ON '5')"
tables = {"R": {"x": np.arange(20)}, "S": {"x": np.arange(20)}}

def complaint(call):
    try:
        call()
    except js.JoinsimError as error:
        return str(error)

if "demo" in sys.argv:
    from joinsim.__main__ import main

    sys.argv[1:] = ["demo", "--json"]
    main()

open("rows.csv", "w").write("ts,x\\n1,2\\n")
run = js.run(query, tables, topology="split_join")
run.report("run.html")
print(json.dumps({
    "exact": run.verdict.exact,
    "synthetic": js.scenario("oij-w1", scale="smoke").run().verdict.exact,
    "ranked": len(js.compare(query, tables, topologies=["nested_loop"]).summary["systems"]),
    "ray": complaint(lambda: js.run(query, tables, backend="ray")),
    "live": complaint(lambda: js.run(query, tables, backend="ray", clock="live")),
    "recovering": complaint(
        lambda: js.run(
            query, tables, backend="ray", clock="live", recovery={"interval": "1 s"}
        )
    ),
    "spark": complaint(lambda: js.prepare("rows.csv", fields=["x"])),
    "failures": js.fuzz(2, topologies=["nested_loop", "kp_oij"]).failures,
    "loaded": sorted(absent & {name.partition(".")[0] for name in sys.modules}),
}))
"""


def run_without_extras(folder: Path, *words: str) -> dict[str, Any]:
    """Return the JSON that the script above prints in *folder*."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {name.split(">")[0] for name in extras["dependencies"]}
    absent = {
        name.split(">")[0]
        for extra in ("spark", "ray", "engines", "docs")
        for name in extras["optional-dependencies"][extra]
    }
    assert not base & absent
    kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, ",".join([*sorted(absent), "py4j"]), *words],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)},
        timeout=500,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_the_base_install_joins_tables_and_names_the_extra_that_is_missing(tmp_path: Path) -> None:
    found = run_without_extras(tmp_path)
    assert found["exact"] is found["synthetic"] is True
    assert found["ranked"] == 1
    for extra in ("ray", "spark"):
        assert f"pip install 'joinsim[{extra}]'" in found[extra]
    assert found["live"] == found["recovering"] == found["ray"]
    assert found["failures"] == []
    assert found["loaded"] == []


def test_the_base_install_runs_the_demo_inline(tmp_path: Path) -> None:
    (run,) = run_without_extras(tmp_path, "demo")["runs"]
    assert (run["backend"], run["verdict"]["exact"]) == ("inline", True)
    assert run["digest"] == "2d8114b2ee79aa16"  # that of the demo with Spark and Ray
