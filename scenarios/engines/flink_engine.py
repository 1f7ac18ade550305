"""Flink: a name that is understood, and refused with the reason."""

from __future__ import annotations

from pathlib import Path

from scenarios.engines.engine import EngineFailed, Measured, installed
from scenarios.plan import Plan

_WHY = "joinsim does not drive PyFlink: it needs a Python environment and a JVM of its own"


class Flink:
    """Flink by way of PyFlink; no query is handed to it."""

    name = "flink"
    install = "pip install apache-flink; even then, " + _WHY

    def version(self) -> str | None:
        """Return PyFlink's version."""
        return installed("apache-flink")

    def cannot(self, plan: Plan) -> str | None:
        """Say why it is not run."""
        return _WHY

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Raise :exc:`EngineFailed`."""
        raise EngineFailed(_WHY)
