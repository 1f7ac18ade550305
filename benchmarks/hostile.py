"""Hostile input: everything that joinsim reads of others, drawn at random and damaged at random.

    python -m benchmarks.hostile --inputs 100000 [--guided 600]

Whatever is read, the outcome is a value or one of our own errors, in one line that names what is
wrong: no traceback, no more than ten seconds and two gigabytes, and nothing that was named in an
input is imported or run. An input that breaks this is shrunk by hypothesis and printed.

With ``--guided``, atheris (https://pypi.org/project/atheris) searches each target for so many
seconds as well, led by what the inputs cover; it is no part of the environment.

Raw files need Spark, which takes a second for each: `tests.spark_bridge.pipeline` has theirs.
"""

from __future__ import annotations

import argparse
import atexit
import json
import math
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from actors.feed import Feed, StreamFile
from actors.hosting.links import ProcessLink
from actors.hosting.process_memory import peak_bytes
from actors.results import Answers
from actors.serialisation import FormatError, from_bytes, to_bytes
from joins.errors import JoinsimError
from joins.matches import Matches
from joins.queries.parser import parse_query
from joins.state import revive
from scenarios import scenario_files
from scenarios.plan import make_plan
from scenarios.worlds import Recording, read_recording
from scenarios.worlds.drawing import draw_world
from spark_bridge.pipeline.expressions import check_expression
from spark_bridge.prepared import load_stream
from topologies import TOPOLOGIES

SECONDS_MAX = 10
BYTES_MAX = 2 * 2**30
_QUERY = (
    b"SELECT s.id FROM s, r WHERE s.a >= r.a AND ABS(s.b - r.b) <= 0.5 WINDOW AS (SLIDE 20 ON 100)"
)
_ROWS = 300
_WORLDS = ("nested_loop", "hp_oij", "semijoin")
_LENGTH_MAX = 100_000  # no argument of a command is longer


class Broken(Exception):  # noqa: N818  (said of what was read, not of us)
    """An input that was neither read nor refused as it should be."""


@dataclass(frozen=True)
class Target:
    """Something that reads what others wrote.

    Attributes
    ----------
    read
        Reads the bytes of one input.
    valid
        Inputs that it accepts; others are made from them.
    errors
        What it raises for all others.
    words
        What inputs are often made of.
    """

    read: Callable[[bytes], object]
    valid: Sequence[bytes]
    errors: tuple[type[Exception], ...] = (JoinsimError,)
    words: Sequence[bytes] = ()

    def check(self, data: bytes) -> None:
        """Read *data*; raise :exc:`Broken` unless that ends as it should, and in time."""
        try:
            with _limited():
                self.read(data)
        except self.errors as error:
            message = str(error)
            if not message.strip() or "Traceback" in message:
                raise Broken(f"refused without a reason: {error!r}") from error
        except Broken:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise Broken(f"{type(error).__name__}: {error}") from error

    def inputs(self) -> st.SearchStrategy[bytes]:
        """Draw bytes: any, words in any order, and valid inputs that are changed in some places."""
        parts = st.lists(st.sampled_from([*self.words, *self.valid]) | st.binary(max_size=8))
        return st.binary(max_size=400) | parts.map(b" ".join) | _changed(self.valid, self.words)


@st.composite
def _changed(draw: st.DrawFn, valid: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    data = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(data)))
        stop = begin + draw(st.sampled_from([0, 0, 1, 1, 2, 8, 64, len(data)]))
        piece = st.binary(max_size=9) | st.sampled_from([b"", b"\xff" * 8, b"\0" * 8, *words])
        data[begin:stop] = draw(piece) * draw(st.sampled_from([1, 1, 1, 2, 1000]))
    return bytes(data[:_LENGTH_MAX])


@contextmanager
def _limited() -> Iterator[None]:
    """Raise :exc:`Broken` in the body when it takes too long; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    began_s, waits = time.process_time(), 5

    def late(*_: object) -> None:
        nonlocal waits
        if waits and time.process_time() - began_s < SECONDS_MAX / 2:
            waits -= 1  # others have had the processor
            signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
            return
        raise Broken(f"not read after {SECONDS_MAX} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _toml(data: bytes) -> None:
    path = folder() / "hostile.toml"
    path.write_bytes(data)
    scenario_files.load(str(path))


def _setting(data: bytes) -> None:
    key, _, value = _text(data).partition("=")
    config = scenario_files.change(_own(), {key: value})
    make_plan(config, prepare=lambda _, query: (load_stream(folder() / "s"),) * len(query.streams))


@cache
def _own() -> Any:
    query = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '20' ON '100')"
    values = {"query": query, "streams": [{"files": [str(folder() / "s")]}], "rows": 100}
    return scenario_files.build(values, where="here")


def _prepared(data: bytes) -> None:
    """Read a prepared stream, of which a segment or the description is *data*."""
    stream = folder() / "s"
    file = stream / ("stream.json" if data[:1] == b"{" else "segments/part-00000.parquet")
    whole = file.read_bytes()
    file.write_bytes(data)
    try:
        prepared = load_stream(stream)
        feed = Feed((StreamFile(schema=prepared.schema, directory=prepared.path, rows=None),))
        while feed.take(1_000) is not None:
            pass
    finally:
        file.write_bytes(whole)


def _snapshot(data: bytes) -> None:
    revive(from_bytes(data))


def _frame(data: bytes) -> None:
    """Read frames from a connection down which *data* comes, which then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname()[:2])
        link = ProcessLink(listener.accept()[0])
    with here:
        thread = threading.Thread(target=here.sendall, args=(data,), daemon=True)
        thread.start()
        thread.join(1)
    try:
        while True:
            from_bytes(link.read())
    except EOFError:
        pass
    finally:
        link.close()


def _world(data: bytes) -> None:
    """Read a world's file, and plan its run."""
    path = folder() / "world.json"
    path.write_bytes(data)
    read_recording(path).world.plan(folder() / "world")


@cache
def folder() -> Path:
    """Return a folder for inputs that are files, with a prepared stream ``s``; gone at the end."""
    made = Path(tempfile.mkdtemp(prefix="joinsim-hostile-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    (made / "s" / "segments").mkdir(parents=True)
    columns = {"id": np.arange(_ROWS), "ts": np.arange(_ROWS), "a": np.arange(_ROWS) % 7}
    pq.write_table(pa.table(columns), made / "s" / "segments" / "part-00000.parquet")
    about = {
        "format": 2, "name": "s", "rows": _ROWS, "rejected": 0, "rejected_reasons": {},
        "notes": [], "join_fields": ["a"], "first_ts": 0, "last_ts": _ROWS - 1, "fingerprint": "",
        "schema": {"a": {"type": "bigint", "join_field": True, "dtype": "int64"}},
    }  # fmt: skip
    (made / "s" / "stream.json").write_text(json.dumps(about))
    return made


@cache
def targets() -> dict[str, Target]:
    """Return all targets by name."""
    matches = Matches(
        stream=1,
        probe_id=np.array([4, 5]),
        count=np.array([1, 0]),
        fingerprint=np.array([9, 0], np.uint64),
        match_id=np.array([2]),
    )
    value = {"a": (1, 2.5, {3}, None), "b": deque([Answers((matches,), (np.arange(7),), (3, 4))])}
    written = to_bytes(value)
    stream = folder() / "s"
    names = ("spo-q3", "oij-w1", "panjoin-fig09")
    catalog = scenario_files.catalog()
    scenarios = [catalog[name].read_bytes() for name in names if name in catalog]
    keys = b"rows seed processes silence feeding.rate_tps network.latency bind.W topology pairs"
    settings_ = [key + b"=" + value for key in keys.split() for value in (b"7", b"3 ms", b"true")]
    worlds = [draw_world(np.random.default_rng(1), TOPOLOGIES[name]) for name in _WORLDS]
    sql = (
        b"SELECT FROM WHERE AND WINDOW AS SLIDE INTERVAL ON BETWEEN ABS( ) < >= != ' s.a r.b 1e999"
    )
    return {
        "parser": Target(lambda data: parse_query(_text(data)), [_QUERY], words=sql.split()),
        "expression": Target(
            lambda data: check_expression(_text(data), "where"),
            [b"a > 3 AND abs(b) < 1e3 OR c IS NULL", b"timestamp_seconds(t)"],
            words=[*sql.split(), b"reflect(", b"'java.lang.System'", b"CASE", b"CAST(", b"--"],
        ),
        "toml": Target(_toml, scenarios, words=[b"[", b"]]", b"=", b'"""', b"1e400", b"../"]),
        "setting": Target(_setting, settings_, words=[b"=", b".", b"9" * 5000, b"nan", b"-1"]),
        "prepared": Target(
            _prepared,
            [
                (stream / "stream.json").read_bytes(),
                (stream / "segments" / "part-00000.parquet").read_bytes(),
            ],
            words=[b'"rows"', b"null", b"1e400", b"-1", b"../../", b"9" * 30],
        ),
        "world": Target(
            _world,
            [str(Recording(world=world)).encode() for world in worlds],
            words=[b'"ts"', b"null", b"1e400", b"-1", b"{", b"]", b"NaN", b"9" * 30, b"../../"],
        ),
        "snapshot": Target(_snapshot, [written], (ValueError,)),
        "frame": Target(
            _frame,
            [struct.pack("<Q", len(written)) + written, bytes(8)],
            (FormatError, ConnectionAbortedError),
        ),
    }


def run(name: str, inputs: int, *, seed: int | None = None) -> None:
    """Check so many inputs of a target; raise :exc:`Broken` with the smallest that breaks it."""
    target = targets()[name]
    before = peak_bytes()  # of whatever this process did until now

    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        derandomize=seed is None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
    )
    @given(data=target.inputs())
    def check(data: bytes) -> None:
        target.check(data)
        taken = peak_bytes() - before
        if taken > BYTES_MAX:
            raise Broken(f"this input, or those before it, took {taken / 2**30:.1f} GiB")

    check()


def guided(name: str, seconds: int) -> None:
    """Have atheris look for inputs of a target for so many seconds; it ends this process."""
    import atheris

    target = targets()[name]
    corpus = folder() / "corpus"
    corpus.mkdir()
    for number, data in enumerate(target.valid):
        (corpus / str(number)).write_bytes(data)
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={seconds}",
            "-rss_limit_mb=2048",
            "-timeout=10",
            str(corpus),
        ],
        target.check,
    )
    atheris.Fuzz()


def main() -> int:
    """Check all targets, or those that are named; return 1 if an input broke one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("target", nargs="*", choices=[[], *targets()], help="by default all")
    parser.add_argument("--inputs", type=int, default=100_000, help="of all targets together")
    parser.add_argument("--guided", type=int, metavar="SECONDS", help="of each target, by atheris")
    options = parser.parse_args()
    names = options.target or list(targets())
    failed = 0
    for name in names:
        count = math.ceil(options.inputs / len(names))
        try:
            run(name, count, seed=1)
        except Broken as broken:
            failed = 1
            print(f"{name}: {broken}\n  {'; '.join(broken.__notes__)}")
        else:
            print(f"{name}: {count:,} inputs, all read or refused")
        if options.guided:
            failed |= _guide(name, options.guided)
    return failed


_GUIDE = """
import sys, atheris
with atheris.instrument_imports(include=["actors", "joins", "scenarios", "spark_bridge"]):
    from benchmarks import hostile
hostile.guided(sys.argv[1], int(sys.argv[2]))
"""


def _guide(name: str, seconds: int) -> int:
    command = [sys.executable, "-c", _GUIDE, name, str(seconds)]
    try:
        import atheris  # noqa: F401
    except ImportError:
        print(f"{name}: not guided: atheris is missing (pip install atheris, outside the lock)")
        return 0
    ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
    words = "nothing was broken" if not ended.returncode else ended.stderr[-2_000:]
    print(f"{name}: {seconds} s guided by coverage: {words}")
    return int(bool(ended.returncode))


if __name__ == "__main__":
    sys.exit(main())
