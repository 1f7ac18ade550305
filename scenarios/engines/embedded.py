"""Engines that are a Python library: they evaluate a query in a process of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scenarios.engines.engine import Measured, installed, needs_two_sides
from scenarios.engines.memory import alone
from scenarios.plan import Plan


class Embedded:
    """A library in a process of its own, on all cores.

    Parameters
    ----------
    name
        Of the engine, and of its Python package.
    join
        Evaluates a query over prepared streams; an importable function of query, files and the
        file to write all pairs to (None: they are counted).
    """

    install = "pip install 'joinsim[engines]'"

    def __init__(self, name: str, join: Callable[..., Measured]) -> None:
        self.name = name
        self._join = join

    def version(self) -> str | None:
        """Return the package's version."""
        return installed(self.name)

    def cannot(self, plan: Plan) -> str | None:
        """Say that it joins by pairs."""
        return needs_two_sides(plan)

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Count the matches of each tuple, or write all pairs where the plan asks for them."""
        out = directory / "found.parquet" if plan.config.pairs else None
        measured, peak_bytes = alone(self._join, plan.query, plan.files, out)
        return replace(measured, memory_bytes=peak_bytes)
