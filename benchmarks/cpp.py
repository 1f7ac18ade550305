"""Programs and libraries of ours over C++ peers, compiled where a compiler and the headers are."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).parent / "peers_cpp"
_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG")


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
