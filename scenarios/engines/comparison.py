"""One query on several engines, each against the oracle."""

from __future__ import annotations

import json
import shutil
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from actors.feed import Feed
from joins.arrivals import Arrivals
from joins.oracle.expected import expected
from scenarios.configuration.configs import ConfigError
from scenarios.engines.engine import Engine, EngineFailed, Measured, Totals
from scenarios.engines.streams import with_own_streams
from scenarios.measures.run_json import versions
from scenarios.running.plan import Plan

_CHUNK_ROWS = 65_536
_STREAMS = "streams"


@dataclass(frozen=True, kw_only=True)
class EngineComparison:
    """What was compared.

    Attributes
    ----------
    plan
        What all engines evaluated.
    rows
        Tuples that went in.
    expected
        What the oracle found.
    measured
        Engine to what came out, the fastest first.
    refused, failed
        Engine to why it cannot evaluate the query, or to what went wrong.
    versions
        Engine to version.
    """

    plan: Plan
    rows: int
    expected: Totals
    measured: dict[str, Measured]
    refused: dict[str, str]
    failed: dict[str, str]
    versions: dict[str, str]

    def equals(self, engine: str) -> bool:
        """Return whether an engine found exactly the expected pairs."""
        return self.measured[engine].totals == self.expected

    @property
    def passed(self) -> bool | None:
        """Whether all engines that ran agree with the oracle; None where nothing was tested."""
        if not self.measured or not (self.expected.pairs or self._produced):
            return None
        return all(map(self.equals, self.measured))

    @property
    def _produced(self) -> bool:
        return any(one.totals.pairs for one in self.measured.values())

    def throughput_tps(self, engine: str) -> float:
        """Return tuples a second of wall time."""
        return self.rows / self.measured[engine].wall_seconds

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        return {
            "comparison": self.plan.config.name,
            "query": " ".join(str(self.plan.query).split()),
            "topology": self.plan.topology.name,
            "tuples": self.rows,
            "expected": asdict(self.expected),
            "passed": self.passed,
            "engines": [
                {
                    "engine": name,
                    "version": self.versions[name],
                    "equal": self.equals(name),
                    **asdict(one.totals),
                    "throughput_tps": self.throughput_tps(name),
                    **{key: value for key, value in vars(one).items() if key != "totals"},
                }
                for name, one in self.measured.items()
            ],
            "refused": [{"engine": name, "reason": why} for name, why in self.refused.items()],
            "failed": [{"engine": name, "reason": why} for name, why in self.failed.items()],
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``compare.json``."""
        text = json.dumps(self.as_json(replay), indent=2, ensure_ascii=False)
        (directory / "compare.json").write_text(text + "\n", encoding="utf-8")


def compare_engines(
    plan: Plan,
    engines: Sequence[Engine],
    directory: Path,
    *,
    on_engine: Callable[[int, str], None] = lambda place, name: None,
) -> EngineComparison:
    """Run *plan* on every engine that can, each in a folder of its own below *directory*.

    What the engines wrote is kept where the plan asks for pairs.

    Raise :exc:`ConfigError` for a plan whose tuples may come late: engines differ in what is late.
    """
    if plan.config.feeding.disorder:
        raise ConfigError(
            f"feeding.disorder = {plan.config.feeding.disorder}: each engine has its own idea of "
            "what is late, so engines are compared on ordered streams; set it to 0"
        )
    directory = directory.resolve()  # Spark's JVM works in another
    plan = with_own_streams(plan, directory / _STREAMS)
    rows, wanted = _expected(plan)
    measured: dict[str, Measured] = {}
    refused: dict[str, str] = {}
    failed: dict[str, str] = {}
    told: dict[str, str] = {}
    for place, engine in enumerate(engines):
        on_engine(place, engine.name)
        version = engine.version()
        why = f"is not installed: {engine.install}" if version is None else engine.cannot(plan)
        if why or version is None:
            refused[engine.name] = str(why)
            continue
        told[engine.name] = version
        folder = directory / engine.name
        folder.mkdir()
        try:
            measured[engine.name] = engine.run(plan, folder)
        except EngineFailed as error:
            failed[engine.name] = str(error)
        except Exception as error:  # one engine's fault must not lose the others
            (directory / f"{engine.name}.txt").write_text(traceback.format_exc(), encoding="utf-8")
            failed[engine.name] = f"{type(error).__name__}: {error}"
        if not plan.config.pairs:
            shutil.rmtree(folder)
    shutil.rmtree(directory / _STREAMS)
    return EngineComparison(
        plan=plan,
        rows=rows,
        expected=wanted,
        measured=dict(sorted(measured.items(), key=lambda item: item[1].wall_seconds)),
        refused=refused,
        failed=failed,
        versions=told,
    )


def _expected(plan: Plan) -> tuple[int, Totals]:
    """Return how many tuples there are, and what the oracle makes of them."""
    rows, totals, feed = 0, Totals(), Feed(plan.files)

    def chunks() -> Any:
        nonlocal rows
        arrivals: Arrivals | None
        while (arrivals := feed.take(_CHUNK_ROWS)) is not None:
            rows += arrivals.rows
            yield arrivals

    for matches in expected(plan.query, [file.schema for file in plan.files], chunks()):
        totals += Totals.of(matches)
    return rows, totals
