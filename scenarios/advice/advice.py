"""What a search comes to: a ranking, what decides it, and what would change it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from actors.whole_files import write_text
from joins.queries.parser import parse_query
from scenarios.advice.search import GOALS, Candidate, Search, Trial, candidates
from scenarios.advice.statistics import DataStatistics, data_statistics, key_of, with_hot_key
from scenarios.config import RunConfig
from scenarios.formatting import by_reason, format_value
from scenarios.measures import look_up
from scenarios.plan import Prepare
from scenarios.run_directory import write_json
from scenarios.run_json import versions
from scenarios.scenario_files import ConfigError, change
from scenarios.study.estimates import Estimate

PRICES = ("core_hour", "machine_hour", "gigabyte")
"""What can have a price; a gigabyte is of what crosses the network."""

_CHANGES_ROWS, _CHANGED = 3, 3
"""Part of the streams that changes run over, and with how many systems: the best of each of so many
topologies."""
_LATENCY, _FASTER = "25 ms", 3
_HOUR_S = 3_600


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that could be otherwise, and who would win then.

    Attributes
    ----------
    what
        In words.
    values
        Label to what each system came to by the first goal; None where it cannot run so.
    winner
        The best of them.
    """

    what: str
    values: Mapping[str, float | None]
    winner: str


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The candidates ranked, the best first, and why.

    Attributes
    ----------
    config, goals, rate_tps, rows
        What was asked for; the caller's rate, None where there is none; tuples of each stream.
    statistics
        Of the data.
    ranked
        Candidates that ran, with their trials; those that ran over all tuples come first.
    front
        Labels of those that none is better than in all goals.
    refused
        Topology to why it cannot evaluate the query on these machines.
    changes
        What would have to change for another to win.
    left_out
        What there was no time for.
    runs, tuples, seconds
        Simulations, the tuples they took, and how long they lasted in real time.
    prices
        Of `PRICES`.
    """

    config: RunConfig
    goals: tuple[str, ...]
    rate_tps: int | None
    rows: int
    statistics: DataStatistics
    ranked: tuple[tuple[Candidate, Trial], ...]
    front: frozenset[str]
    refused: Mapping[str, str]
    changes: tuple[Change, ...]
    left_out: tuple[str, ...]
    runs: int
    tuples: int
    seconds: float
    prices: Mapping[str, float] = field(default_factory=dict)

    @property
    def all_goals(self) -> tuple[str, ...]:
        """The goals there are: each has a figure of every candidate."""
        return tuple(GOALS)

    @property
    def winner(self) -> Candidate:
        """The best candidate."""
        return self.ranked[0][0]

    @property
    def winning_config(self) -> RunConfig:
        """The configuration of a run of the winner, at the caller's rate if there is one."""
        one = self.winner
        return change(
            self.config,
            {
                "topology": one.topology,
                "parameters": dict(one.settings),
                "feeding.rate_tps": self.rate_tps,
            },
        )

    def finalists(self) -> list[tuple[Candidate, Trial]]:
        """Return those of the winner's round."""
        best = self.ranked[0][1]
        last = (best.last, best.rows)
        return [(one, trial) for one, trial in self.ranked if (trial.last, trial.rows) == last]

    def estimate(self, trial: Trial, goal: str) -> Estimate | None:
        """Return what a candidate came to by a goal, with its interval; None without a value."""
        values = trial.values(GOALS[goal])
        return Estimate(tuple(values)) if values else None

    def price(self, one: Candidate, trial: Trial) -> float | None:
        """Return what a thousand million tuples cost at its rate; None without prices."""
        if not self.prices:
            return None
        hourly = one.cores * self.prices.get("core_hour", 0.0)
        hourly += one.machines * self.prices.get("machine_hour", 0.0)
        throughput = self.estimate(trial, "throughput")
        per_second = self.rate_tps or (throughput.mean if throughput else 0.0)
        shipped = self.estimate(trial, "bytes")
        tuples = self.rows * len(self.statistics.streams)
        sent = shipped.mean / tuples * self.prices.get("gigabyte", 0.0) if shipped else 0.0
        return hourly / _HOUR_S / per_second * 1e9 + sent if per_second else None

    @property
    def why(self) -> str:
        """Why the winner wins, with the numbers that decide."""
        one, trial = self.ranked[0]
        goal = self.goals[0]
        mine = self.estimate(trial, goal)
        sentences = [f"{one.label} is best by {goal}: {mine} {GOALS[goal].unit}"]
        for other, others in self.finalists()[1:]:
            if other.topology != one.topology and (theirs := self.estimate(others, goal)):
                ratio = _ratio(mine, theirs, highest=GOALS[goal].highest)
                sentences[0] += f", {ratio} {other.label} ({theirs})"
                sentences += _difference(trial, others, one, other)
                break
        if self.rate_tps is not None and trial.fed:
            busy = look_up(trial.fed[0], "latency_ms.p95")
            does = "keeps up with" if trial.keeps_up else "does not keep up with"
            sentences.append(
                f"It {does} {self.rate_tps:,} tuples/s, at a latency of {format_value(busy)} ms "
                f"(p95), on {one.machines} machines and {one.cores} cores"
            )
        return ". ".join(sentences) + "."

    @property
    def note(self) -> str:
        """How the figures were found, and what they are of."""
        at = "as fast as they are taken" if self.rate_tps is None else f"at {self.rate_tps:,}/s"
        return (
            f"{len(self.ranked)} candidates, {self.runs} simulations of {self.tuples:,} tuples in "
            f"{self.seconds:.0f} s. tuples/s: at saturation; latency, network and state: of "
            f"tuples fed {at}."
        )

    @property
    def runs_from_file(self) -> bool:
        """Whether its data can be found again by a file: tables in memory cannot."""
        return not any(stream.table for stream in self.config.streams)

    @property
    def toml(self) -> str:
        """The winner as a TOML file."""
        dumped = self.winning_config.model_dump(
            mode="json", exclude_defaults=True, exclude={"name", "title", "figure"}
        )
        return "".join(f"{key} = {_toml(value)}\n" for key, value in dumped.items())

    @property
    def python(self) -> str:
        """The call that runs the winner."""
        config = self.winning_config
        how: dict[str, Any] = {
            "topology": config.topology,
            "seed": config.seed,
            "rows": config.rows,
        }
        how["network"] = config.network.model_dump(mode="json", exclude_defaults=True)
        how["feeding"] = config.feeding.model_dump(mode="json", exclude_defaults=True)
        how["bind"] = config.bind
        said = {key: value for key, value in (how | config.parameters).items() if value}
        streams = ", ".join(f'"{one.name}": ...' for one in self.statistics.streams)
        query = " ".join(config.query.split())
        arguments = "".join(f", {key}={value!r}" for key, value in said.items())
        return f"joinsim.run({query!r}, {{{streams}}}{arguments})"

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        return {
            "advice": self.winner.label,
            "why": self.why,
            "query": " ".join(self.config.query.split()),
            "goals": list(self.goals),
            "rate_tps": self.rate_tps,
            "rows": self.rows,
            "data": str(self.statistics),
            "candidates": [
                {
                    "label": one.label,
                    "topology": one.topology,
                    "parameters": dict(one.settings),
                    "machines": one.machines,
                    "cores": one.cores,
                    "pes": one.pes,
                    "rows": trial.rows,
                    "keeps_up": trial.keeps_up,
                    "trade_off": one.label in self.front,
                    "price": self.price(one, trial),
                    **{goal: _as_json(self.estimate(trial, goal)) for goal in GOALS},
                }
                for one, trial in self.ranked
            ],
            "changes": [vars(one) for one in self.changes],
            "refused": by_reason(self.refused),
            "left_out": list(self.left_out),
            "runs": self.runs,
            "tuples": self.tuples,
            "seconds": self.seconds,
            "prices": dict(self.prices),
            "toml": self.toml,
            "python": self.python,
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``advice.json``, and the winner as ``advice.toml``."""
        write_json(directory / "advice.json", self.as_json(replay))
        write_text(directory / "advice.toml", self.toml)


def _as_json(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"mean": estimate.mean, "interval": estimate.interval, "seeds": len(estimate.samples)}


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _ratio(mine: Estimate | None, theirs: Estimate, *, highest: bool) -> str:
    if mine is None or not mine.mean or not theirs.mean:
        return "beside"
    times = mine.mean / theirs.mean if highest else theirs.mean / mine.mean
    return f"{times:.2g} times as good as" if times >= 1.05 else "about as good as"


def _difference(mine: Trial, theirs: Trial, one: Candidate, other: Candidate) -> list[str]:
    """Return what the two do differently with a tuple, in numbers."""
    sentences = []
    for candidate, trial in ((one, mine), (other, theirs)):
        records = trial.saturated or trial.fed
        busy: Mapping[str, float] = records[0].get("busy_seconds", {})
        operators = {name: seconds for name, seconds in busy.items() if name != "total"}
        if not operators:
            return []
        hottest = max(operators, key=lambda name: operators[name])
        copies = look_up(records[0], f"copies.{hottest}") or 0.0
        balance = look_up(records[0], f"row_balance.{hottest}") or 0.0
        each = operators[hottest] / max(1, records[0]["tuples"]) * 1e9
        sentences.append(
            f"In {candidate.topology} most work is in {hottest}: {format_value(each)} ns a tuple, "
            f"each of which goes to {format_value(copies)} of its PEs, {balance:.0%} balanced"
        )
    return sentences


def advise(
    config: RunConfig,
    prepare: Prepare,
    *,
    goals: Sequence[str] = ("throughput",),
    machines: int = 8,
    topologies: Sequence[str] = (),
    budget_s: float = 60.0,
    seeds: int = 3,
    prices: Mapping[str, float] | None = None,
    on_point: Callable[[int, str], None] = lambda done, label: None,
) -> Advice:
    """Search for the best candidates, and simulate what would change the ranking.

    Parameters
    ----------
    config
        The query, its data, network and feeding; the rate of the latter, or that of the data's own
        event times, is the caller's rate.
    prepare
        Returns the query's streams.
    goals
        Of `GOALS`, the most important first.
    machines, topologies
        At most so many sites that do the join's work; the systems to look at, by default all.
    budget_s
        Seconds of real time that simulations may take; one candidate runs at the least.
    seeds
        With how many the best run.
    prices
        Of `PRICES`.

    Raises
    ------
    ConfigError
        There is no such goal or price, or nothing can evaluate the query.
    """
    for kind, known, given in (("goal", GOALS, goals), ("price", PRICES, prices or {})):
        for name in given:
            if name not in known:
                raise ConfigError(f"{kind} {name}: there are {', '.join(known)}")
    query = parse_query(config.query).bind(**{k: str(v) for k, v in config.bind.items()})
    streams = prepare(config, query)
    rows = min(max(stream.rows for stream in streams), config.rows or 2**62)
    statistics = data_statistics(query, streams, config.rows)
    chosen, refused = candidates(config, prepare, machines=machines, topologies=topologies)
    if not chosen:
        raise ConfigError(
            f"nothing can evaluate the query on {machines} machines: "
            + "; ".join(f"{', '.join(who)}: {why}" for why, who in by_reason(refused).items())
        )
    search = Search(
        config=config,
        prepare=prepare,
        goals=goals,
        rate_tps=config.feeding.rate_tps or statistics.rate_tps,
        rows=rows,
        budget_s=budget_s,
        seeds=seeds,
        on_point=on_point,
    )
    ranked = search.run(chosen)
    if not ranked:
        raise ConfigError(f"no candidate could run: {'; '.join(search.failed)}")
    trials = {one.label: trial for one, trial in ranked}
    best = ranked[0][1]
    longest = [one for one, trial in ranked if (trial.last, trial.rows) == (best.last, best.rows)]
    search.share = 1.0
    changes = _changes(search, [one for one, _ in ranked], query, streams)
    return Advice(
        config=config,
        goals=tuple(goals),
        rate_tps=search.rate_tps,
        rows=rows,
        statistics=statistics,
        ranked=tuple(ranked),
        front=frozenset(one.label for one in search.front(longest, trials)),
        refused=refused,
        changes=tuple(changes),
        left_out=tuple(search.left_out),
        runs=search.runs,
        tuples=search.tuples_run,
        seconds=time.monotonic() - search.begun,
        prices=prices or {},
    )


def _changes(
    search: Search, ranked: Sequence[Candidate], query: Any, streams: Sequence[Any]
) -> list[Change]:
    """Simulate what could be otherwise, with the best candidate of each of the best topologies."""
    best: dict[str, Candidate] = {}
    for one in ranked:
        best.setdefault(one.topology, one)
    systems = list(best.values())[:_CHANGED]
    rows = max(search.rows // _CHANGES_ROWS, min(search.rows, 1_000))
    cases: list[tuple[str, Search]] = [
        (
            f"links of {_LATENCY}",
            replace(search, config=change(search.config, {"network.latency": _LATENCY})),
        )
    ]
    if search.rate_tps is not None:
        faster = _FASTER * search.rate_tps
        cases.append((f"rate x {_FASTER}, {faster:,} tuples/s", replace(search, rate_tps=faster)))
    if any(key_of(query, place) for place in range(len(streams))):
        hot = tuple(with_hot_key(query, one, place) for place, one in enumerate(streams))
        cases.append(("half of the tuples with one key", replace(search, prepare=lambda *_: hot)))
    changes: list[Change] = []
    goal = GOALS[search.goals[0]]
    for what, changed in cases:
        if len(systems) < 2 or search.is_over:
            search.left_out.append(f"what would change with {what}")
            continue
        search.on_point(len(changes), f"with {what}")
        trials: dict[str, Trial] = {}
        changed.left_out, changed.tuples_run, changed.runs = [], 0, 0
        both = changed.rate_tps != search.rate_tps
        changed.measure_all(systems, trials, rows, what, both=both)
        ran = [one for one in systems if trials[one.label].rows]
        search.left_out += changed.left_out
        search.tuples_run += changed.tuples_run
        search.runs += changed.runs
        if not ran:
            continue
        values = {one.label: next(iter(trials[one.label].values(goal)), None) for one in systems}
        winner = changed.ranked(ran, trials)[0].label
        changes.append(Change(what=what, values=values, winner=winner))
    return changes
