"""The search for the best topology: simulations, in rounds of which each keeps the better ones.

Successive halving (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and
Hyperparameter Optimization, AISTATS 2016): every candidate runs over a short prefix of the streams,
the best part of them over a longer one, and few over all of it. Within a round a candidate is
stopped once it has taken several times as long, in virtual time, as the round's best.

The clock decides how many candidates run; what a candidate comes to is simulated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from actors.source import NS_PER_S
from joins.queries.query import JoinQuery
from netsim.outcome import Progress
from scenarios.config import RunConfig
from scenarios.measures import ENDS, look_up, record
from scenarios.plan import Plan, Prepare, make_plan
from scenarios.run import Simulated, execute, simulate
from scenarios.scenario_files import ConfigError, change
from scenarios.sustainable import is_sustained
from scenarios.sweep import PES
from topologies import TOPOLOGIES, Topology, TopologyError


class Goal(NamedTuple):
    """What is to be good: a measure of runs at saturation, or at the caller's own rate."""

    measure: str
    unit: str
    highest: bool
    saturated: bool


GOALS = {
    "throughput": Goal("throughput_tps", "tuples/s", True, True),
    "latency": Goal("latency_ms.p95", "ms p95", False, False),
    "bytes": Goal("network.bytes", "bytes", False, False),
    "memory": Goal("state_bytes.total", "bytes of state", False, False),
}

STRUCTURES = ("index", "structure", "immutable")
"""Parameters that choose how a PE stores its tuples: all their values are tried."""

_FIRST, _SECOND = 16, 4
"""Parts of the streams that the first round and the second run over."""
_FILLED = 8
"""The first round is longer where a window of tuples would not fill, up to this part."""
_KEEP = (6, 3)
"""One in so many candidates goes on, after the first round and after the second."""
_LEAST = (4, 2)
"""So many go on in any case."""
_HOPELESS = 4
"""A run that has taken so many times as long as its round's best will not be among the better."""
_LEAST_ROWS = 400
_SHARES = (0.4, 0.6, 0.85)
"""Of the time, when each round has to end: what comes after it needs some too."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A topology with its parameters.

    Attributes
    ----------
    topology, settings
        What runs.
    pes, machines, cores
        Actors that neither feed it nor take its results, the sites that these are on, and the cores
        of those that they can use.
    """

    topology: str
    settings: Mapping[str, Any]
    pes: int
    machines: int
    cores: int

    @property
    def label(self) -> str:
        """Its name in a table."""
        return ", ".join([self.topology, *(f"{k}={v}" for k, v in self.settings.items())])


@dataclass
class Trial:
    """What a candidate came to in its longest runs.

    Attributes
    ----------
    rows
        Tuples of each stream that it ran over; 0 where it has not run.
    saturated, fed
        Records of runs as fast as tuples are taken, and at the caller's rate; one for each seed.
    keeps_up
        Whether it sustained the rate; None where there is none.
    last
        Whether it ran in the last round: over all tuples, with its answers judged.
    """

    rows: int = 0
    saturated: list[dict[str, Any]] = field(default_factory=list)
    fed: list[dict[str, Any]] = field(default_factory=list)
    keeps_up: bool | None = None
    last: bool = False

    def values(self, goal: Goal) -> list[float]:
        """Return what it came to, one for each seed."""
        records = self.saturated if goal.saturated or not self.fed else self.fed
        known = [look_up(one, goal.measure) for one in records]
        return [value for value in known if value is not None]


class _StoppedError(Exception):
    """A run that is not worth its end."""


def candidates(
    config: RunConfig,
    prepare: Prepare,
    *,
    machines: int,
    topologies: Sequence[str] = (),
) -> tuple[list[Candidate], dict[str, str]]:
    """Return what can evaluate the query on *machines*, and why other topologies cannot.

    Each exact topology comes with every structure that it offers, and PEs in powers of two.
    """
    found: dict[str, Candidate] = {}
    refused: dict[str, str] = {}
    cores = config.network.cores
    for name in topologies or TOPOLOGIES:
        topology = TOPOLOGIES[name]
        if not topology.exact:
            refused[name] = "it does not claim to be exact"
            continue
        fits = False
        shapes = _settings(topology, machines, cores, own=config.parameters, base=config.topology)
        for settings in shapes:
            try:
                plan = make_plan(_configure(config, name, settings), prepare=prepare)
            except (TopologyError, ConfigError) as error:
                refused.setdefault(name, str(error))
                continue
            one = _sized(plan, name, settings)
            if not topology.claims_exact(plan.parameters):
                continue
            if one.machines > machines or one.cores > machines * cores:
                refused.setdefault(name, f"it needs {one.machines} machines at the least")
                continue
            fits = True
            found.setdefault(repr((name, plan.parameters)), one)
        if fits:
            refused.pop(name, None)
    # The likely ones first: a round's first good one stops others early.
    ranked = sorted(found.values(), key=lambda one: ("nested_loop" in one.label, -one.pes))
    return ranked, refused


def _settings(
    topology: Topology[Any], machines: int, cores: int, *, own: Mapping[str, Any], base: str
) -> Iterator[dict[str, Any]]:
    most = machines * cores
    known = {one.name for one in fields(topology.parameters_type)}
    schema = TypeAdapter(topology.parameters_type).json_schema().get("properties", {})
    given = dict(own) if topology.name == base else {}
    structure = next((name for name in STRUCTURES if "enum" in schema.get(name, {})), None)
    pes = next((name for name in PES if name in known), None)
    shapes: list[dict[str, Any]] = [{}]
    if pes is not None and pes not in given:
        top = cores if pes == "threads" else most
        # One machine fewer, where a router has one of its own.
        counts = sorted({1 << power for power in range(top.bit_length())} | {max(1, top - 1)})
        shapes = [{pes: 0}] * (pes == "threads") + [{pes: count} for count in counts]
    elif {"grid_rows", "grid_columns"} <= known:
        sides = [(r, c) for r in (1, 2, 4, 8) for c in (r, 2 * r) if r * c <= most]
        shapes = [{"grid_rows": rows, "grid_columns": columns} for rows, columns in sides]
    kinds: list[dict[str, Any]] = [{}]
    if structure and structure not in given:
        kinds = [{structure: value} for value in schema[structure]["enum"]]
    for shape in reversed(shapes):
        for kind in kinds:
            yield given | shape | kind


def _configure(config: RunConfig, topology: str, settings: Mapping[str, Any]) -> RunConfig:
    return change(config, {"topology": topology, "parameters": dict(settings)})


def _sized(plan: Plan, name: str, settings: Mapping[str, Any]) -> Candidate:
    graph = plan.graph(pairs=False)
    on: dict[str, int] = {}
    for actor, role in graph.nodes(data="role"):
        if role not in ENDS:
            site = graph.placement[actor]
            on[site] = on.get(site, 0) + 1
    each = plan.config.network.cores
    threads = int(settings.get("threads", 1)) or 1
    return Candidate(
        topology=name,
        settings=dict(settings),
        pes=sum(on.values()),
        machines=len(on),
        cores=sum(max(min(actors, each), threads) for actors in on.values()),
    )


@dataclass
class Search:
    """A search under way.

    Attributes
    ----------
    config
        The query, its data and the network.
    goals
        Names of `GOALS`, the most important first.
    rate_tps
        The caller's own rate; None where only saturation is looked at.
    rows
        Tuples of each stream in the longest runs.
    budget_s
        Real seconds for all: no run starts after its round's share of it, and one that goes on
        then is stopped.
    seeds
        With how many the last round runs.
    on_point
        Called before a run with how many of its round are done, and what is next.
    tuples_run, runs, seconds
        What was simulated, and the processor time that it took.
    left_out, failed
        What there was no time for; what was stopped or failed, and why.
    begun, share
        When it began, by `time.monotonic`; the share of the time that this round may take.
    give_up
        Whether a run that has become hopeless is stopped.
    """

    config: RunConfig
    prepare: Prepare
    goals: Sequence[str]
    rate_tps: int | None
    rows: int
    budget_s: float
    seeds: int = 1
    on_point: Callable[[int, str], None] = lambda done, label: None
    tuples_run: int = 0
    runs: int = 0
    seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)
    share: float = 1.0
    give_up: bool = True

    @property
    def is_over(self) -> bool:
        """Whether this round's share of the time is spent; one run at least has time."""
        return self.runs > 0 and time.monotonic() > self.begun + self.share * self.budget_s

    def run(self, chosen: Sequence[Candidate]) -> list[tuple[Candidate, Trial]]:
        """Return the candidates with their trials, the best first."""
        trials = {one.label: Trial() for one in chosen}
        window = window_rows(self.config, self.rows)
        first = max(self.rows // _FIRST, min(window, self.rows // _FILLED), _LEAST_ROWS)
        lengths = (min(self.rows, first), min(self.rows, max(first, self.rows // _SECOND)))
        going = list(chosen)
        for number, rows in enumerate(lengths):
            self.share = _SHARES[number]
            self.measure_all(going, trials, rows, f"round {number + 1}")
            ran = [one for one in going if trials[one.label].rows == rows]
            keep = max(_LEAST[number], len(ran) // _KEEP[number])
            going = self.ranked(ran or going, trials)[:keep]
            if rows == self.rows:
                break
        self.share = _SHARES[-1]
        self.measure_all(going, trials, self.rows, "last round", seeds=self.seeds, both=True)
        order = self.ranked([one for one in chosen if trials[one.label].rows], trials)
        return [(one, trials[one.label]) for one in order]

    def measure_all(
        self,
        going: Sequence[Candidate],
        trials: dict[str, Trial],
        rows: int,
        called: str,
        *,
        seeds: int = 1,
        both: bool = False,
    ) -> None:
        """Run all of *going* over *rows* tuples, and put what each came to into *trials*."""
        best_ns: dict[int | None, int] = {}
        for one in going:
            trials.setdefault(one.label, Trial())
        for done, one in enumerate(going):
            if self.is_over:
                self.left_out.append(f"{called}: {len(going) - done} of {len(going)} candidates")
                return
            self.on_point(done, f"{called}, {one.label}")
            trial = Trial(rows=rows, last=both)
            try:
                for seed in range(seeds):
                    self._measure(one, trial, rows, seed, best_ns, both=both)
                    last = [trial.values(GOALS[name])[-2:] for name in self.goals]
                    if all(len(two) == 2 and two[0] == two[1] for two in last):
                        break  # nothing random enters it
            except _StoppedError as error:
                if not trial.saturated and not trial.fed:
                    self.failed.append(f"{one.label}: {error}")
                    continue
                if self.rate_tps is not None and not trial.fed:
                    trial.keeps_up = False
            except Exception as error:  # one system's fault must not lose the others
                self.failed.append(f"{one.label}: {error}")
                continue
            trials[one.label] = trial

    def _measure(
        self,
        one: Candidate,
        trial: Trial,
        rows: int,
        seed: int,
        best_ns: dict[int | None, int],
        *,
        both: bool,
    ) -> None:
        goals = [GOALS[name] for name in self.goals]
        judged = both or "latency" in self.goals
        if both or self.rate_tps is None or any(goal.saturated for goal in goals):
            found, _ = self.run_one(one, rows, None, seed, best_ns, judged=judged)
            trial.saturated.append(found)
        if self.rate_tps is not None and (both or not all(goal.saturated for goal in goals)):
            rate = self.rate_tps
            found, trial.keeps_up = self.run_one(one, rows, rate, seed, best_ns, judged=judged)
            trial.fed.append(found)

    def run_one(
        self,
        one: Candidate,
        rows: int,
        rate_tps: int | None,
        seed: int = 0,
        best_ns: dict[int | None, int] | None = None,
        *,
        judged: bool = True,
    ) -> tuple[dict[str, Any], bool | None]:
        """Return the record of one run, and whether it kept up with its rate.

        Without *judged* the record has what is counted as it runs, and no more. Raise
        `_StoppedError` where its answer is wrong, where it takes much longer than the best of
        *best_ns*, by rate, or where time is over.
        """
        settings = {"rows": rows, "feeding.rate_tps": rate_tps, "seed": self.config.seed + seed}
        config = change(_configure(self.config, one.topology, one.settings), settings)
        begun = time.process_time()
        best = (best_ns or {}).get(rate_tps) if self.give_up else None

        def watch(at: Progress, _: float) -> None:
            if self.is_over:
                raise _StoppedError("time was over")
            if best is not None and at.virtual_ns > _HOPELESS * best:
                raise _StoppedError(f"it takes more than {_HOPELESS} times as long as the best")

        try:
            with TemporaryDirectory(prefix="joinsim-") as folder:
                plan = make_plan(config, prepare=self.prepare)
                if judged:
                    report = execute(plan, Path(folder), on_run=watch, rehearsal=False)
                    if report.verdict.passed is False:
                        raise _StoppedError("its answer was not exact")
                    ran: Simulated = report
                    found = record(report)
                    keeps_up = None if rate_tps is None else is_sustained(report)
                else:
                    ran = simulate(plan, Path(folder), pairs=False, on_run=watch)
                    found, keeps_up = _counted(plan, ran), None
        finally:
            self.seconds += time.process_time() - begun
        self.tuples_run += ran.outcome.tuples
        self.runs += 1
        if best_ns is not None:
            ended = ran.outcome.virtual_ns
            best_ns[rate_tps] = min(ended, best_ns.get(rate_tps, ended))
        return found, keeps_up

    def ranked(self, chosen: Sequence[Candidate], trials: Mapping[str, Trial]) -> list[Candidate]:
        """Return *chosen*, the best first: the last round, longer runs, who keeps up, the goals.

        Of several goals, what no other one is better in all comes first (see `front`).
        """
        layers: dict[str, int] = {}
        left = list(chosen)
        while left and len(self.goals) > 1:
            best = self.front(left, trials)
            layers |= dict.fromkeys((one.label for one in best), len(set(layers.values())))
            left = [one for one in left if one not in best]

        def key(one: Candidate) -> tuple[Any, ...]:
            trial = trials[one.label]
            score = self.scores(trial)
            return (
                not trial.last,
                -trial.rows,
                trial.keeps_up is False,
                layers.get(one.label, 0),
                *score,
            )

        return sorted(chosen, key=key)

    def scores(self, trial: Trial) -> tuple[float, ...]:
        """Return a number per goal, the lower the better."""
        scores = []
        for goal in (GOALS[name] for name in self.goals):
            values = trial.values(goal)
            mean = sum(values) / len(values) if values else float("inf")
            scores.append(-mean if goal.highest and values else mean)
        return tuple(scores)

    def front(self, chosen: Sequence[Candidate], trials: Mapping[str, Trial]) -> list[Candidate]:
        """Return those of *chosen* that no other one beats in one goal and equals in the rest."""
        scores = {one.label: self.scores(trials[one.label]) for one in chosen}

        def beaten(mine: tuple[float, ...]) -> bool:
            return any(
                other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
                for other in scores.values()
            )

        return [one for one in chosen if not beaten(scores[one.label])]


def _counted(plan: Plan, ran: Simulated) -> dict[str, Any]:
    """Return the figures of a run that are counted while it runs."""
    outcome, roles = ran.outcome, plan.graph(pairs=False).nodes(data="role")
    stored = sum(ran.state_bytes.get(actor, 0) for actor, role in roles if role not in ENDS)
    return {
        "throughput_tps": outcome.tuples / max(1, outcome.virtual_ns) * NS_PER_S,
        "latency_ms": {"p95": None},
        "network": {"bytes": outcome.nbytes},
        "state_bytes": {"total": stored},
    }


def window_rows(config: RunConfig, rows: int) -> int:
    """Return how many tuples of a stream its window has; *rows* where that goes by time."""
    from joins.queries.parser import parse_query

    query: JoinQuery = parse_query(config.query).bind(
        **{name: str(value) for name, value in config.bind.items()}
    )
    if query.window is None or any(one.kind != "count" for one in query.windows):
        return 0
    return max(one.length for one in query.windows)
