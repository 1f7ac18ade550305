"""What a person waits for: commands from their start to their end, by the clock.

In the clock: a whole command, from the start of its process to its end.

``python -m benchmarks.start`` takes all; names of cases take those alone, as in
``python -m benchmarks.start help list warm``. Warm: what commands leave in the cache folder is
there, and the prepared streams. Cold: neither is, as in the first command after an installation.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.measure import Result, report
from spark_bridge.session import classes_path, find_java

_JOINSIM = str(Path(sys.executable).parent / "joinsim")
_RUN = (_JOINSIM, "run", "spo-q3")
_RAY = (*_RUN, "--backend", "ray")
_LIVE = (*_RUN, "--clock", "live")

_TABLES = """
import time
start = time.perf_counter()
import numpy as np, joinsim as js
rng = np.random.default_rng(1)
def table():
    return {"ts": np.arange(10_000), "key": rng.integers(0, 1_000, 10_000)}
def join():
    run = js.run(
        "SELECT * FROM A, B WHERE A.key = B.key WINDOW AS (SLIDE INTERVAL '100' ON '1000')",
        {"A": table(), "B": table()},
    )
    assert run.verdict.exact
join()
first = time.perf_counter()
join()
print(first - start, time.perf_counter() - first)
"""
"""Two tables in memory, joined twice in one process."""

_PREPARE = """
import sys, time
start = time.perf_counter()
import joinsim as js
from scenarios.streams import find_file
stream = js.prepare(find_file(("yellow_taxi_sample.parquet",)), time="pickup_datetime",
                    fields=["trip_distance", "fare_amount"], name="NYC", rows=60_000,
                    out=sys.argv[1])
assert stream.rows == 60_000, stream.rows
print(time.perf_counter() - start)
"""

_SIX_MILLION = """
import sys
from pathlib import Path
import joinsim as js, pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq
from scenarios.streams import find_file
trips = pq.read_table(find_file(("yellow_taxi_sample.parquet",))).sort_by("pickup_datetime")
column, kind = trips.schema.get_field_index("pickup_datetime"), trips["pickup_datetime"].type
span = pa.scalar(400 * 86_400_000, pa.duration("ms"))  # longer than theirs
path, rows = Path(sys.argv[1]).with_name("trips.parquet"), 6_000_000
with pq.ParquetWriter(path, trips.schema) as file:
    while rows:
        part = trips.slice(0, rows)
        file.write_table(part)
        rows -= part.num_rows
        later = pc.add(trips["pickup_datetime"], span).cast(kind)
        trips = trips.set_column(column, trips.schema.field(column), later)
data = {"name": "NYC", "files": [str(path)], "time": "pickup_datetime"}
run = js.scenario("spo-q3").with_settings({"rows": 6_000_000, "streams": [data]}).run()
assert run.verdict.exact
parts, whole = run.summary["wall_parts"], run.summary["wall_seconds"]
print(parts["prepare"], parts["oracle"] / whole, whole)
"""
"""The sample of trips again and again, each time later, until they are six million."""

_MESH = """
import time
from actors.hosting.inline import InlineHost
from actors.protocol import ActorSpec
from benchmarks.simulator import End, Nothing, Once, Relay
from actors.hosting.process_memory import peak_bytes
from netsim.cost import load_profile
from netsim.kernel import Kernel
from netsim.network import PRESETS, full_mesh
from netsim.trace import Trace, trace_names
before = peak_bytes()
start = time.perf_counter()
relays = tuple(f"relay.{i}" for i in range(9_998))
wiring = {"source": {"out": relays}} | {name: {"out": ("sink",)} for name in relays} | {"sink": {}}
specs = {name: ActorSpec(actor=Relay) for name in relays}
specs |= {"source": ActorSpec(actor=Once), "sink": ActorSpec(actor=End)}
kernel = Kernel(wiring=wiring, placement={name: name for name in wiring},
                network=full_mesh(wiring, PRESETS["rack"]), profile=load_profile(),
                host=InlineHost(specs, wiring, 1), seed=1, trace=Trace(trace_names(wiring)),
                collect=lambda emitted: None)
assert kernel.run().messages == 2 * len(relays)
seconds = time.perf_counter() - start
print(seconds, (peak_bytes() - before) / 2**20)
"""
"""10,000 sites, a link between every two, an actor on each, and a message to and from each."""


def _environment() -> dict[str, str]:
    """Return this process's environment, with byte code kept, as an installation has it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _seconds(
    command: tuple[str, ...], folder: Path, *, cold: bool = False, classes: bool = False
) -> float:
    """Return what *command* takes; its files go below *folder*, where it is *cold* all of them.

    With *classes* a cold one has what ``make setup`` stores of Spark.
    """
    environment = _environment()
    if cold:
        environment |= {"XDG_CACHE_HOME": str(folder), "JOINSIM_PREPARED": str(folder / "prepared")}
        environment.pop("JOINSIM_CACHE", None)
    if classes:
        stored = classes_path(find_java()).parent
        assert any(stored.glob("*.jsa")), "run python -m spark_bridge.class_archive first"
        (folder / "joinsim").mkdir()
        (folder / "joinsim" / stored.name).symlink_to(stored)
    if command[1] == "run":
        command = (*command, "--out", str(folder / "run"))
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def _command(
    name: str,
    target: float | None,
    *command: str,
    repeats: int = 5,
    cold: bool = False,
    classes: bool = False,
) -> list[Result]:
    seconds = []
    for turn in range(repeats if cold else repeats + 1):
        with tempfile.TemporaryDirectory() as folder:
            taken = _seconds(command, Path(folder), cold=cold, classes=classes)
        if turn or cold:  # what is warm was there before
            seconds.append(taken)
    return [Result.of(name, seconds, unit="s", target=target, at_least=False)]


def _program(
    figures: Mapping[str, tuple[str, float]], program: str, *, repeats: int = 3, cold: bool = False
) -> list[Result]:
    """Return the figures that *program* prints, by name with their units and targets."""
    printed = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            environment = _environment()
            if cold:
                environment["XDG_CACHE_HOME"] = folder
                environment.pop("JOINSIM_CACHE", None)
            command = [sys.executable, "-c", program, f"{folder}/prepared"]
            done = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True
            )
            printed.append([float(value) for value in done.stdout.split()])
    return [
        Result.of(name, [values[place] for values in printed], unit=unit, target=target,
                  at_least=False)
        for place, (name, (unit, target)) in enumerate(figures.items())
    ]  # fmt: skip


_CASES: Mapping[str, Callable[[], list[Result]]] = {
    "help": lambda: _command("joinsim --help", 0.3, _JOINSIM, "--help"),
    "list": lambda: _command("joinsim list", 0.6, _JOINSIM, "list"),
    "list-cold": lambda: _command(
        "joinsim list, the first", None, _JOINSIM, "list", repeats=3, cold=True
    ),
    "warm": lambda: _command("joinsim run spo-q3, warm", 1.5, *_RUN),
    "ray": lambda: _command("joinsim run spo-q3 --backend ray, warm", 4.0, *_RAY, repeats=3),
    "live": lambda: _command("joinsim run spo-q3 --clock live, warm", 4.0, *_LIVE, repeats=3),
    "cold": lambda: _command("joinsim run spo-q3, cold", 9.0, *_RUN, repeats=3, cold=True),
    "cold-classes": lambda: _command(
        "the same with Spark's classes stored, as make setup does",
        9.0,
        *_RUN,
        repeats=3,
        cold=True,
        classes=True,
    ),
    "tables": lambda: _program(
        {
            "js.run of two tables of 10,000 rows, cold": ("s", 5.0),
            "the same, once more in the process": ("s", 1.0),
        },
        _TABLES,
        cold=True,
    ),
    "prepare": lambda: _program({"60,000 trips prepared from nothing": ("s", 6.0)}, _PREPARE),
    "six-million": lambda: _program(
        {
            "joinsim run spo-q3 of 6,000,000 trips: prepared": ("s", 15.0),
            "the same: the oracle's share": ("", 1 / 3),
            "the same: in all": ("s", 70.0),
        },
        _SIX_MILLION,
    ),
    "mesh": lambda: _program(
        {
            "10,000 sites in full mesh, a message to and from each": ("s", 2.0),
            "the same, memory": ("MB", 200.0),
        },
        _MESH,
    ),
}


def measure(names: list[str]) -> list[Result]:
    """Return the figures of the cases *names*, all if there is none."""
    unknown = [name for name in names if name not in _CASES]
    if unknown:
        raise SystemExit(f"there is no case {unknown[0]}; there are {', '.join(_CASES)}")
    return [result for name in names or _CASES for result in _CASES[name]()]


if __name__ == "__main__":
    report("start", measure([one for one in sys.argv[1:] if not one.startswith("-")]))
