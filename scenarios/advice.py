"""Advice: which topology for a query, its data, a network, a number of machines and a goal.

A search ranks the topologies by simulating them (`scenarios.topology_search`). The advice says why
the winner wins, what would have to change for another to win, and what real engines do.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joins.errors import suggest
from joins.queries.query import JoinQuery
from scenarios.config import RunConfig
from scenarios.data_statistics import DataStatistics, data_statistics, key_of, with_hot_key
from scenarios.engines import Engine
from scenarios.engines.comparison import EngineRanking, compare_engines, find_engines
from scenarios.formatting import (
    NO_VALUE,
    by_reason,
    format_duration,
    format_many,
    format_rate,
    format_toml,
    format_value,
    group_refusals,
)
from scenarios.machine import versions
from scenarios.many_runs import split_settings
from scenarios.measures import look_up
from scenarios.plan import Prepare, bound_line, bound_query, make_plan
from scenarios.replays import python_call
from scenarios.run_directory import WrittenResult
from scenarios.scenario_files import ConfigError, change
from scenarios.study.judging import Estimate
from scenarios.topology_search import (
    GOALS,
    Candidate,
    Search,
    Spent,
    best_of_topologies,
    candidates,
)
from spark_bridge.prepared import PreparedStream
from topologies import TOPOLOGIES, Named, registered_names

PRICES = ("core_hour", "machine_hour", "gigabyte")
"""What can have a price; a gigabyte is of what crosses the network."""
TOML = "advice.toml"

_CHANGES_ROWS, _CHANGED = 3, 3
"""Part of the streams that changes run over, and with how many systems: the best of each of so many
topologies."""
_LATENCY, _FASTER = "25 ms", 3
_HOUR_S = 3_600
_CANDIDATE = (
    "label", "topology", "parameters", "machines", "cores", "pes", "rows", "keeps_up", "last",
)  # fmt: skip
_LEAST_ENGINE_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that could be otherwise, and who would win then."""

    what: str
    """In words."""
    goal: str
    """That the values are of."""
    values: Mapping[str, float | None]
    """Label to what each system came to; None where it cannot run so."""
    winner: str
    """The best of them."""


@dataclass(frozen=True, kw_only=True)
class CandidateRanking(WrittenResult):
    """The candidates ranked, the best first, and why."""

    file = "advice.json"

    config: RunConfig
    goals: tuple[str, ...]
    rate_tps: int | None
    """The caller's rate; None where there is none."""
    rows: int
    """Tuples of each stream."""
    statistics: DataStatistics
    ranked: tuple[Candidate, ...]
    """Candidates that ran; those that ran over all tuples come first."""
    front: frozenset[str]
    """Labels of those that none is better than in all goals."""
    refused: Mapping[str, str]
    """Topology to why it cannot evaluate the query on these machines."""
    changes: tuple[Change, ...]
    """What would have to change for another to win."""
    engines: EngineRanking | None
    """Real engines, measured on this machine; None where none was to run."""
    spent: Spent
    seconds: float
    """How long the search lasted, in real time."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Of `PRICES`."""

    @property
    def winner(self) -> Candidate:
        """The best candidate."""
        return self.ranked[0]

    @property
    def winning_config(self) -> RunConfig:
        """The configuration of a run of the winner, at the caller's rate if there is one."""
        return change(self.winner.configure(self.config), {"feeding.rate_tps": self.rate_tps})

    @property
    def shown(self) -> list[Candidate]:
        """The candidates of the last round, and the best one of each other topology."""
        best = best_of_topologies(self.ranked)
        return [one for one in self.ranked if one.last or best[one.topology] is one]

    def price(self, one: Candidate) -> float | None:
        """Return what a thousand million tuples cost at its rate; None without prices."""
        throughput, shipped = (one.estimate(goal) for goal in ("throughput", "bytes"))
        per_second = self.rate_tps or (throughput.mean if throughput else 0.0)
        if not self.prices or not per_second:
            return None
        hourly = one.cores * self.prices.get("core_hour", 0.0)
        hourly += one.machines * self.prices.get("machine_hour", 0.0)
        sent = shipped.mean * self.prices.get("gigabyte", 0.0) if shipped else 0.0
        return hourly / _HOUR_S / per_second * 1e9 + sent

    @property
    def why(self) -> str:
        """Why the winner wins, with the numbers that decide."""
        one, goal = self.winner, self.goals[0]
        mine = one.estimate(goal)
        first, *others = [
            f"{one.label} is best by {goal}: {format_estimate(mine)} {GOALS[goal].unit}"
        ]
        for other in self.shown[1:]:
            theirs = other.estimate(goal)
            if other.topology != one.topology and mine and theirs:
                same = other.rows == one.rows
                comparable = same or GOALS[goal].saturated  # it is extrapolated
                highest = GOALS[goal].highest
                ratio = _ratio(mine, theirs, highest=highest) if comparable else "ahead of"
                over = "" if same else f" over {format_many(other.rows, 'tuple')} of each stream"
                first += f", {ratio} {other.label} ({format_estimate(theirs)}{over})"
                others = [*_hottest(one), *_hottest(other)]
                break
        if self.rate_tps is not None and one.fed and one.keeps_up is not None:
            p95_ms = look_up(one.fed[0], "latency_ms.p95")
            p95 = format_duration(None if p95_ms is None else p95_ms * 1e6)
            does = "keeps up with" if one.keeps_up else "does not keep up with"
            others.append(
                f"It {does} {format_rate(self.rate_tps)}, at a latency of {p95} (p95), on "
                f"{format_many(one.machines, 'machine')} and {format_many(one.cores, 'core')}"
            )
        if not one.last:
            others.append("No time was left to run it over all tuples and to judge its answer")
        return ". ".join([first, *others]) + "."

    @property
    def note(self) -> str:
        """How the figures were found, and what they are of."""
        fed = [one.fed[0]["tuples"] for one in self.shown if one.fed]
        of = "the same run"
        if fed and self.rate_tps is not None:
            of = (
                f"at most {format_many(max(fed), 'tuple')} fed at {format_rate(self.rate_tps)}; of "
                "a system that did not run so, at saturation"
            )
        return (
            f"{format_many(len(self.ranked), 'candidate')}, "
            f"{format_many(self.spent.runs, 'simulation')} of "
            f"{format_many(self.spent.tuples, 'tuple')} in {self.seconds:.0f} s. "
            "Tuples/s: at saturation, in virtual time, extrapolated where fewer tuples ran. "
            f"Latency, bytes a tuple and bytes of state: of {of}."
        )

    @property
    def runs_from_file(self) -> bool:
        """Whether its data can be found again by a file: tables in memory cannot."""
        return not any(stream.table for stream in self.config.streams)

    @property
    def toml(self) -> str:
        """The winner as a TOML file."""
        dumped = self.winning_config.written(without={"title", "figure"})
        dumped = {"name": self.config.name} | dumped  # its streams are prepared under that name
        for stream in dumped["streams"]:  # so that it runs from any folder
            if "files" in stream:
                stream["files"] = [_absolute(name) for name in stream["files"]]
        return "".join(f"{key} = {format_toml(value)}\n" for key, value in dumped.items())

    def reproduce(self, directory: Path) -> dict[str, str]:
        """Return the lines that run the winner: a command, Python, and inside Spark."""
        file = directory / TOML
        if self.runs_from_file:
            return {
                "command": shlex.join(["joinsim", "run", str(file)]),
                "Python": f"joinsim.scenario({str(file)!r}).run()",
                "Spark": f'joinsim.scenario({str(file)!r}).compare_engines("spark")',
            }
        return {"Python": python_call(self.winning_config)}

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        return {
            "advice": self.winner.label,
            "why": self.why,
            "query": bound_line(self.config),
            "goals": list(self.goals),
            "rate_tps": self.rate_tps,
            "rows": self.rows,
            "data": str(self.statistics),
            "candidates": [
                {name: getattr(one, name) for name in _CANDIDATE}
                | {"trade_off": one.label in self.front, "price": self.price(one)}
                | {goal: _as_json(one.estimate(goal)) for goal in GOALS}
                for one in self.ranked
            ],
            "changes": [vars(one) for one in self.changes],
            "engines": self.engines.as_json(replay)["engines"] if self.engines else [],
            "refused": by_reason(self.refused),
            "left_out": self.spent.left_out,
            "given_up": self.spent.given_up,
            "failed": self.spent.failed,
            "runs": self.spent.runs,
            "tuples": self.spent.tuples,
            "seconds": self.seconds,
            "prices": dict(self.prices),
            "toml": self.toml,
            "reproduce": self.reproduce(Path()),
            "versions": versions(),
            "replay": replay,
        }


def _absolute(file: str) -> str:
    """Return the path of a file that is there; a name that is looked for in data folders stays."""
    return str(Path(file).absolute()) if Path(file).exists() else file


def format_estimate(value: Estimate | None) -> str:
    """Return an estimate as text, with its interval where seeds matter."""
    return NO_VALUE if value is None else str(value).removesuffix(" =")


def _as_json(value: Estimate | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"mean": value.mean, "interval": value.interval, "seeds": len(value.samples)}


def _ratio(mine: Estimate, theirs: Estimate, *, highest: bool) -> str:
    if not mine.mean or not theirs.mean:
        return "beside"
    times = mine.mean / theirs.mean if highest else theirs.mean / mine.mean
    if times >= 1.05:
        return f"{times:.2g} times as good as"
    # Who keeps up, or is better in other goals, is ahead of one with a better figure.
    return "about as good as" if times > 0.95 else "ahead of"


def _hottest(one: Candidate) -> list[str]:
    """Return where a candidate's work is, in numbers, as far as its run was analysed."""
    found = one.saturated[0] if one.saturated else {}
    operators = {name: s for name, s in found.get("busy_seconds", {}).items() if name != "total"}
    if not operators:
        return []
    hottest = max(operators, key=lambda name: operators[name])
    copies = look_up(found, f"copies.{hottest}") or 0.0
    balance = look_up(found, f"row_balance.{hottest}") or 0.0
    each = format_duration(operators[hottest] / max(1, found["tuples"]) * 1e9)
    return [
        f"In {one.topology} most work is in {hottest}: {each} a tuple; each tuple goes to "
        f"{format_value(copies)} of its PEs, whose work is {balance:.0%} balanced"
    ]


def advise(
    config: RunConfig,
    prepare: Prepare,
    *,
    goals: Sequence[str],
    machines: int,
    topologies: Named | Sequence[Named],
    settings: Mapping[str, Any],
    engines: str | Sequence[str],
    budget_s: float,
    seeds: int,
    prices: Mapping[str, float] | None,
    on_round: Callable[[str, int, int], None],
) -> CandidateRanking:
    """Search for the best candidates, simulate what would change that, and run real engines.

    Most is as for `joinsim.advise`; *prepare* returns the query's streams, *settings* are as for
    `scenarios.many_runs.split_settings`, and *on_round* is called with what is done, how many runs
    of it have ended, and how many there are. The rate of the configuration's feeding, or that of
    the data's own event times, is the caller's rate.

    Raise :exc:`ConfigError` where there is no such goal, price, engine or parameter, or where
    nothing can evaluate the query, and :exc:`TopologyError` where there is no such topology.
    """
    if not goals:
        raise ConfigError(f"goal: name at least one of {', '.join(GOALS)}")
    for kind, known, given in (("goal", GOALS, goals), ("price", PRICES, prices or {})):
        for name in given:
            if name not in known:
                raise ConfigError(f"{kind} {name}: {suggest(name, known)}")
    names = registered_names(topologies) or list(TOPOLOGIES)
    config, parameters = split_settings(config, [TOPOLOGIES[name] for name in names], settings)
    real_engines = find_engines(engines) if engines else []
    query = bound_query(config.query, config.bind)
    streams = prepare(config, query)
    rows = min(max(stream.rows for stream in streams), config.rows or 2**62)
    statistics = data_statistics(query, streams, config.rows)
    chosen, refused = candidates(
        config, prepare, machines=machines, topologies=names, parameters=parameters
    )
    if not chosen:
        raise ConfigError(
            f"nothing can evaluate the query on {format_many(machines, 'machine')}: "
            f"{group_refusals(refused)}"
        )
    search = Search(
        config=config,
        prepare=prepare,
        goals=goals,
        rate_tps=config.feeding.rate_tps or statistics.rate_tps,
        rows=rows,
        budget_s=budget_s,
        seeds=seeds,
        on_round=on_round,
    )
    ranked = search.run(chosen)
    if not ranked:
        raise ConfigError(
            f"no candidate could run: {'; '.join([*search.spent.given_up, *search.spent.failed])}"
        )
    best = ranked[0]
    longest = [one for one in ranked if (one.last, one.rows) == (best.last, best.rows)]
    search.share = 1.0
    changes = tuple(_changes(search, ranked, query, streams))
    measured = _run_engines(search, best.configure(config), real_engines) if real_engines else None
    return CandidateRanking(
        config=config,
        goals=tuple(goals),
        rate_tps=search.rate_tps,
        rows=rows,
        statistics=statistics,
        ranked=tuple(ranked),
        front=frozenset(one.label for one in search.front(longest)),
        refused=refused,
        changes=changes,
        engines=measured,
        spent=search.spent,
        seconds=time.monotonic() - search.spent.begun,
        prices=prices or {},
    )


def _changes(
    search: Search, ranked: Sequence[Candidate], query: JoinQuery, streams: Sequence[PreparedStream]
) -> list[Change]:
    """Simulate what could be otherwise, with the best candidate of each of the best topologies."""
    best = [one for one in ranked if best_of_topologies(ranked)[one.topology] is one]
    systems = [replace(one, rows=0, saturated=(), fed=()) for one in best[:_CHANGED]]
    rows = max(search.rows // _CHANGES_ROWS, min(search.rows, 1_000))
    slow = change(search.config, {"network.latency": _LATENCY})
    cases = {f"links of {_LATENCY}": replace(search, config=slow)}
    if search.rate_tps is not None:  # the throughput at saturation is none of it
        goals = [goal for goal in search.goals if not GOALS[goal].saturated] or ["latency"]
        faster = _FASTER * search.rate_tps
        what = f"rate x {_FASTER}, {format_rate(faster)}"
        cases[what] = replace(search, rate_tps=faster, goals=goals)
    if any(key_of(query, place) for place in range(len(streams))):
        hot = tuple(with_hot_key(query, one, place) for place, one in enumerate(streams))
        cases["half of the tuples with one key"] = replace(search, prepare=lambda *_: hot)
    changes: list[Change] = []
    for what, changed in cases.items():
        ran = changed.simulate_all(systems, rows, what) if len(systems) > 1 else []
        if ran := [one for one in changed.ranked(ran) if one.rows]:
            goal = changed.goals[0]
            values = {one.label: next(iter(one.values(goal)), None) for one in ran}
            changes.append(Change(what=what, goal=goal, values=values, winner=ran[0].label))
    return changes


def _run_engines(
    search: Search, config: RunConfig, engines: Sequence[Engine]
) -> EngineRanking | None:
    """Run real engines on this machine; engines beyond the budget are not run."""
    comparison = None
    plan = make_plan(change(config, {"feeding.rate_tps": None}), prepare=search.prepare)
    # A time limit is an interrupt, which comes to the main thread alone.
    in_main = threading.current_thread() is threading.main_thread()
    each_s = search.seconds_left / len(engines)
    limit_s = max(_LEAST_ENGINE_S, each_s) if in_main else None
    try:
        with TemporaryDirectory(prefix="joinsim-") as folder:
            for comparison in compare_engines(plan, engines, Path(folder), limit_s=limit_s):
                search.on_round("real engines", len(comparison.measured), len(engines))
                if search.seconds_left < 0:
                    break
    except ConfigError as error:
        search.spent.left_out.append(f"engines: {error}")
    if comparison:
        search.spent.left_out += [f"engine {name}" for name in comparison.waiting]
    return comparison
