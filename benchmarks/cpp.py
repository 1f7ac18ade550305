"""Programs and libraries of ours over C++ peers, compiled where a compiler and the headers are."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from joins.window_join.rows import KernelRows

SOURCES = Path(__file__).parent / "peers_cpp"
_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG")
_HEADERS = {"absl": "absl/container/btree_set.h", "tlx": "tlx/container/btree_set.hpp"}
_LIBRARIES = {"absl": ("-labsl_throw_delegate", "-labsl_raw_logging_internal"), "tlx": ()}


def missing_header(header: str, flags: Sequence[str]) -> str | None:
    """Return what is missing for a program that includes *header*; None when it compiles."""
    program = f"#include <{header}>\nint main() {{}}\n"
    return _run([*flags, "-x", "c++", "-fsyntax-only", "-"], f"no header {header}", program)


def compile_source(name: str, target: Path, flags: Sequence[str]) -> str | None:
    """Compile a source of `SOURCES` into *target*; return why that failed, None if it did not."""
    return _run([str(SOURCES / name), "-o", str(target), *flags], f"{name} does not compile")


def _run(arguments: Sequence[str], failure: str, stdin: str | None = None) -> str | None:
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return f"no C++ compiler ({', '.join(_COMPILERS)})"
    command = [compiler, *_FLAGS, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if not done.returncode:
        return None
    return failure if stdin else f"{failure}: {done.stderr[:2000]}"


@dataclass(frozen=True)
class PeerMatches:
    """What a peer found for each row."""

    count: np.ndarray
    fingerprint: np.ndarray


class PeerJoin:
    """A window join of the C++ library; takes rows as our own joins do."""

    def __init__(self, library: ctypes.CDLL, name: str, *, huge_pages: bool) -> None:
        self._library = library
        self._join = ctypes.c_void_p(library.peer_make(name.encode(), int(huge_pages)))

    def join(self, rows: KernelRows) -> PeerMatches:
        """Join the next arrivals."""
        n = len(rows.side)
        found = PeerMatches(np.empty(n, np.int64), np.empty(n, np.uint64))
        columns = rows.side, rows.position, rows.key, rows.low, rows.high, rows.start
        arrays = [np.ascontiguousarray(column) for column in columns]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, found.count)]
        pointers.append(ctypes.c_void_p(found.fingerprint.ctypes.data))
        self._library.peer_join(self._join, ctypes.c_int64(n), *pointers)
        return found


def build_tree_peers(folder: Path, includes: Sequence[str]) -> tuple[ctypes.CDLL | None, list[str]]:
    """Compile window joins over C++ trees in *folder*; return the library, and what is missing."""
    flags = [f"-I{include}" for include in includes]
    lacking = {name: missing_header(header, flags) for name, header in _HEADERS.items()}
    missing = sorted({what for what in lacking.values() if what})
    if all(lacking.values()):
        return None, missing
    libraries = [flag for name, what in lacking.items() if not what for flag in _LIBRARIES[name]]
    target = folder / "window_join.so"
    failed = compile_source("window_join.cpp", target, ["-shared", "-fPIC", *flags, *libraries])
    if failed:
        return None, [*missing, failed]
    library = ctypes.CDLL(str(target))
    library.peer_names.restype = ctypes.c_char_p
    library.peer_make.restype = ctypes.c_void_p
    return library, missing
