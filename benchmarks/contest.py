"""What every comparison of engines measures, and how: one definition for all of them.

``benchmarks/README.md`` says what is in the clock, what is warm, and how engines take turns.
Answers that are not equal to the oracle's stop a script.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.measure import Result, check_equal
from scenarios.config import RunConfig
from scenarios.engines import Engine, with_own_streams
from scenarios.engines.comparison import oracle_totals
from scenarios.plan import Plan, make_plan
from scenarios.preparation import prepare_by_spark
from scenarios.scenario_files import change
from spark_bridge.engines import EngineResult, Totals

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One engine in a contest, at settings of its own.

    Attributes
    ----------
    name
        In the table; says how many threads or processes it has.
    engine
        What runs.
    settings
        Changes of the configuration, keys as for ``--set``.
    """

    name: str
    engine: Engine
    settings: Mapping[str, Any] = field(default_factory=dict)


def engines_contest(
    title: str,
    config: RunConfig,
    contenders: Sequence[Contender],
    *,
    turns: int,
    pairs: bool,
    over: Sequence[tuple[str, str, float | None]] = (),
) -> list[Result]:
    """Have engines take turns at one query over the same prepared files.

    Parameters
    ----------
    config
        The query and its streams.
    pairs
        Whether pairs are written to files; else they are counted.
    over
        Names of two contenders, and how many times as fast the first should be, if that is said.

    Returns
    -------
    list of Result
        Tuples a second of each, and the ratios *over*. A contender that is not installed, or cannot
        evaluate the query, has a line on stderr instead.
    """
    config = change(config, {"pairs": pairs})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = with_own_streams(make_plan(config, prepare=prepare_by_spark), folder / "streams")
        rows, wanted = oracle_totals(base)
        runs = {}
        for contender in contenders:
            chosen = change(config, dict(contender.settings))
            plan = replace(
                make_plan(chosen, prepare=lambda *_: base.streams),
                files=base.files,
            )
            why = cannot_run(contender.engine, plan)
            if why:
                print(f"{title}: {contender.name} is left out: {why}", file=sys.stderr)
                continue
            runs[contender.name] = _run_of(contender.engine, plan, folder / "turn", wanted)
        results = take_turns(title, runs, turns=turns, count=rows, unit="tuples/s", over=over)
        note = f"{rows:,} tuples, {wanted.pairs:,} pairs"
        return [replace(result, note=note) for result in results[:1]] + results[1:]


def cannot_run(engine: Engine, plan: Plan) -> str | None:
    """Return why *engine* has no place in a contest; None where it has."""
    if engine.version() is None:
        return f"it is not installed: {engine.install}"
    return engine.cannot(plan)


def _run_of(engine: Engine, plan: Plan, folder: Path, wanted: Totals) -> Callable[[], EngineResult]:
    def run() -> EngineResult:
        folder.mkdir()
        try:
            measured = engine.run(plan, folder)
        finally:
            shutil.rmtree(folder)
        check_equal(engine.name, measured.totals, wanted)
        return measured

    return run


def take_turns(
    title: str,
    runs: Mapping[str, Callable[[], EngineResult]],
    *,
    turns: int,
    count: int,
    unit: str,
    over: Sequence[tuple[str, str, float | None]] = (),
) -> list[Result]:
    """Run all of *runs* by turns; return *count* things a second of each, and the ratios *over*.

    Every run has its clock of its own, as the module says, and has checked its answer.
    """
    turned = [{name: run() for name, run in runs.items()} for _ in range(turns)]
    results = [
        Result.rate(
            f"{title}: {name}",
            count,
            [turn[name].wall_seconds for turn in turned],
            unit=unit,
            start_seconds=[turn[name].start_seconds for turn in turned],
        )
        for name in runs
    ]
    for one, other, target in over:
        if one in runs and other in runs:
            ratios = [turn[other].wall_seconds / turn[one].wall_seconds for turn in turned]
            results.append(
                Result.of(f"{title}: {one} over {other}", ratios, unit="times", target=target)
            )
    return results
