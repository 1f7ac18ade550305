"""Window joins tuple by tuple beside the ordered sets of C++ libraries, in the same minutes.

In the clock: from arrivals in memory to counts and fingerprints in memory, of full windows; of one
thread its processor time, of two the wall time.

The work of `benchmarks.pim_tree`. The peers are Abseil's ``btree_set`` and tlx's, each as
it comes and with nodes or entries that suit it better, on huge pages or on malloc's: a library of
our own over both (``peers_cpp/window_join.cpp``), which is compiled where there are a C++ compiler
and the headers (Debian: libabsl-dev; tlx: its sources, ``--include DIR``). What is missing is
said, and the rest is measured. All joins take the same parts of the arrivals in turns; each part's
counts and fingerprints are compared with a join computed by numpy.

Run: ``python -m benchmarks.tree_peers [--window-bits 16 20] [--rounds 5] [--include DIR] [--json]``
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cpp import compile_source, missing_header
from benchmarks.measure import Result, command_line, report
from benchmarks.pim_tree import Contender, make_work, measure, share_pim_tree
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.machine.memory import keep_freed_memory
from joins.window_join.b_plus_join import BPlusTreeJoin
from joins.window_join.forest_join import ForestJoin
from joins.window_join.rows import KernelRows

SOURCE = "window_join.cpp"
HEADERS = {"absl": "absl/container/btree_set.h", "tlx": "tlx/container/btree_set.hpp"}
LIBRARIES = {"absl": ("-labsl_throw_delegate", "-labsl_raw_logging_internal"), "tlx": ()}
YARDSTICK = "absl::btree_set, packed, huge pages"
_BATCH = 8_192
_LIVE_BATCH = 65_536
_TIMES = {16: 2.0, 20: 3.0}
"""What PIM-Tree is to be of the yardstick, by the logarithm of the window."""


@dataclass(frozen=True)
class Found:
    """What a peer found for each row."""

    count: np.ndarray
    fingerprint: np.ndarray


class PeerJoin:
    """A window join of the C++ library; takes rows as our own joins do."""

    def __init__(self, library: ctypes.CDLL, name: str, *, huge_pages: bool) -> None:
        self._library = library
        self._join = ctypes.c_void_p(library.peer_make(name.encode(), int(huge_pages)))

    def join(self, rows: KernelRows) -> Found:
        """Join the next arrivals."""
        n = len(rows.side)
        found = Found(np.empty(n, np.int64), np.empty(n, np.uint64))
        columns = rows.side, rows.position, rows.key, rows.low, rows.high, rows.start
        arrays = [np.ascontiguousarray(column) for column in columns]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, found.count)]
        pointers.append(ctypes.c_void_p(found.fingerprint.ctypes.data))
        self._library.peer_join(self._join, ctypes.c_int64(n), *pointers)
        return found


def build(folder: Path, includes: Sequence[str]) -> tuple[ctypes.CDLL | None, list[str]]:
    """Compile the library of peers into *folder*; return it, and what is missing."""
    flags = [f"-I{include}" for include in includes]
    lacking = {name: missing_header(header, flags) for name, header in HEADERS.items()}
    missing = sorted({what for what in lacking.values() if what})
    if all(lacking.values()):
        return None, missing
    libraries = [flag for name, what in lacking.items() if not what for flag in LIBRARIES[name]]
    target = folder / "window_join.so"
    failed = compile_source(SOURCE, target, ["-shared", "-fPIC", *flags, *libraries])
    if failed:
        return None, [*missing, failed]
    library = ctypes.CDLL(str(target))
    library.peer_names.restype = ctypes.c_char_p
    library.peer_make.restype = ctypes.c_void_p
    return library, missing


def contenders(library: ctypes.CDLL | None) -> dict[str, Callable[[], Contender]]:
    """Return how to make each join that is compared, and the size of its batches."""
    ours: dict[str, Callable[[], Contender]] = {
        "B+-tree": lambda: (BPlusTreeJoin(), _BATCH),
        "PIM-Tree": lambda: (ForestJoin(PimTree(sides=2)), _BATCH),
        "live PIM-Tree, 1 thread": lambda: (share_pim_tree(1), _LIVE_BATCH),
        "live PIM-Tree, 2 threads": lambda: (share_pim_tree(2), _LIVE_BATCH),
    }
    if library is None:
        return ours
    names = library.peer_names().decode().split("\n")[:-1]

    def peer(name: str, pages: str) -> Callable[[], Contender]:
        return lambda: (PeerJoin(library, name, huge_pages=pages == "huge pages"), _BATCH)

    peers = {
        f"{name}, {pages}": peer(name, pages)
        for name in names
        for pages in ("huge pages", "malloc")
    }
    return ours | peers


def targets(rates: dict[str, list[float]], bits: int) -> list[Result]:
    """Return what ours were to reach, round by round against the same round of another."""
    wanted = (
        ("live PIM-Tree, 2 threads", "live PIM-Tree, 1 thread", 1.7),
        ("B+-tree", YARDSTICK, 1.0),
        ("PIM-Tree", YARDSTICK, _TIMES.get(bits)),
    )
    return [
        Result.of(
            f"2^{bits}: {name} over {over}",
            [a / b for a, b in zip(rates[name], rates[over], strict=True)],
            unit="times",
            target=target,
        )
        for name, over, target in wanted
        if name in rates and over in rates
    ]


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--window-bits", type=int, nargs="+", default=[16, 20], metavar="BITS")
    parser.add_argument("--rounds", type=int, default=5, help="times windows are replaced (5)")
    parser.add_argument("--include", action="append", default=[], metavar="DIR")
    parser.add_argument("--only", action="append", default=[], help="joins whose name has this")
    options = parser.parse_args()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        library, missing = build(Path(folder), options.include)
        for what in missing:
            print(f"{what}: measured without it")
        results: list[Result] = []
        for bits in options.window_bits:
            window = 1 << bits
            joins: dict[str, Contender] = {
                name: make()
                for name, make in contenders(library).items()
                if not options.only or any(part in name for part in options.only)
            }
            rounds = options.rounds * max(1, min(4, (1 << 18) >> bits))
            rows = make_work((1 + rounds) * 2 * window, window)
            rates, _ = measure(rows, window, joins)
            results += [
                Result.of(f"2^{bits}: {name}", values, unit="tuples/s")
                for name, values in rates.items()
            ]
            results += targets(rates, bits)
        report("window joins beside C++, counts and fingerprints equal numpy's", results)


if __name__ == "__main__":
    main()
