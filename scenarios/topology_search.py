"""The search for the best topology: candidates, and rounds of simulations that keep the better.

Candidates are the topologies that can evaluate the query, with every structure that they offer and
PEs in powers of two.

Successive halving (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and
Hyperparameter Optimization, AISTATS 2016). Every kind of candidate, with as many PEs as there may
be, runs over a short prefix of the streams; then the best kinds with every other number of PEs; the
best of all these over a longer prefix; and very few over all of it. From its two prefixes a
candidate's time for all tuples is extrapolated. Within a round a candidate is stopped once it has
taken several times as long, in virtual time, as the round's best.

The clock decides how many candidates run; what a candidate comes to is simulated.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from actors.protocol import NS_PER_S, Progress
from netsim.network import NetworkError
from scenarios.config import RunConfig
from scenarios.measures import END_ROLES, is_sustained, look_up, record
from scenarios.observer import Line
from scenarios.plan import Plan, Prepare, bound_query, make_plan, parameter_names
from scenarios.run import RunFigures, execute, simulate
from scenarios.scenario_files import ConfigError, change
from scenarios.study.judging import Estimate
from scenarios.sweep import PES
from topologies import TOPOLOGIES, Topology, TopologyError, find_topology


class Goal(NamedTuple):
    """What is to be good: a measure of runs at saturation, or at the caller's own rate."""

    measure: str
    unit: str
    highest: bool
    saturated: bool


GOALS = {
    "throughput": Goal("throughput_tps", "tuples/s", highest=True, saturated=True),
    "latency": Goal("latency_ms.p95", "ms p95", highest=False, saturated=False),
    "bytes": Goal("network.each", "bytes a tuple", highest=False, saturated=False),
    "memory": Goal("state_bytes.total", "bytes of state", highest=False, saturated=False),
}

_STRUCTURE_PARAMETERS = ("index", "structure", "immutable")
"""Parameters that choose how a PE stores its tuples: all their values are tried."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A topology with its parameters, and what it came to in its longest runs."""

    topology: str
    parameters: Mapping[str, Any]
    kind: str
    """Its label without the number of PEs."""
    pes: int
    """Actors that neither feed it nor take its results."""
    machines: int
    """Sites that these are on."""
    cores: int
    """Cores of those sites that they can use."""
    rows: int = 0
    """Tuples of each stream that it ran over; 0 where it has not run."""
    saturated: tuple[dict[str, Any], ...] = ()
    """Records of runs as fast as tuples are taken, one for each seed. The throughput of one that is
    not the last is extrapolated where it can be."""
    fed: tuple[dict[str, Any], ...] = ()
    """Records of runs at the caller's rate, likewise."""
    keeps_up: bool | None = None
    """Whether it sustained the rate; None where that is not known."""
    last: bool = False
    """Whether it ran in the last round: over all tuples, with its answers judged."""

    @property
    def label(self) -> str:
        """Its name in a table."""
        return _label(self.topology, self.parameters)

    def configure(self, config: RunConfig) -> RunConfig:
        """Return *config* with its topology and parameters."""
        system = {"topology": self.topology, "parameters": dict(self.parameters)}
        return change(config, system)

    def values(self, goal: str) -> list[float]:
        """Return what it came to by a goal, a name of `GOALS`: one value for each seed."""
        wanted = GOALS[goal]
        records = self.saturated if wanted.saturated or not self.fed else self.fed
        known = (look_up(one, wanted.measure) for one in records)
        return [value for value in known if value is not None]

    def estimate(self, goal: str) -> Estimate | None:
        """Return the mean of its `values`, with the interval of the seeds; None without a value."""
        values = self.values(goal)
        return Estimate(tuple(values)) if values else None


def _label(topology: str, parameters: Mapping[str, Any]) -> str:
    return ", ".join([topology, *(f"{name}={value}" for name, value in parameters.items())])


def best_of_topologies(ranked: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return the first of each topology."""
    return {one.topology: one for one in reversed(ranked)}


def candidates(
    config: RunConfig,
    prepare: Prepare,
    *,
    machines: int,
    topologies: Sequence[str] = (),
    parameters: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> tuple[list[Candidate], dict[str, str]]:
    """Return what can evaluate the query on *machines*, and why other topologies cannot.

    *parameters* are what is set already, by topology.
    """
    found: dict[str, Candidate] = {}
    refused: dict[str, str] = {}
    least: dict[str, int] = {}
    most = machines * config.network.cores
    for name in topologies or TOPOLOGIES:
        topology = find_topology(name)
        if not topology.exact:
            refused[name] = "it does not claim to be exact"
            continue
        own = dict(parameters.get(name, {}))
        for shape, kind in _settings(topology, most, config.network.cores, own):
            settings = own | shape | kind
            try:
                system = change(config, {"topology": name, "parameters": settings})
                plan = make_plan(system, prepare=prepare)
            except (TopologyError, ConfigError, NetworkError) as error:
                refused.setdefault(name, str(error))
                continue
            one = _sized(plan, system.parameters, _label(name, kind))
            if one.machines > machines or one.cores > most:
                least[name] = min(one.machines, least.get(name, one.machines))
                refused[name] = f"it needs {least[name]} machines at the least"
            elif topology.claims_exact(plan.parameters):
                found.setdefault(repr((name, plan.parameters)), one)
    fit = {one.topology for one in found.values()}
    # The likely ones first: a round's first good one stops others early.
    ranked = sorted(found.values(), key=lambda one: ("nested_loop" in one.label, -one.pes))
    return ranked, {name: why for name, why in refused.items() if name not in fit}


def _settings(
    topology: Topology[Any], most: int, cores: int, own: Mapping[str, Any]
) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the PEs and structures to try, for up to *most* cores, where *own* leave them open.

    Most PEs come first.
    """
    known = parameter_names(topology)
    hints = get_type_hints(topology.parameters_type)
    pes = next((name for name in PES if name in known), None)
    shapes: list[dict[str, Any]] = [{}]
    if pes is not None and pes not in own:
        top = cores if pes == "threads" else most
        # One machine fewer, where a router has one of its own.
        counts = {1 << power for power in range(top.bit_length())} | {max(1, top - 1)}
        shapes = [{pes: count} for count in sorted(counts | ({0} if pes == "threads" else set()))]
    elif {"grid_rows", "grid_columns"} <= known:
        sides = [(r, c) for r in (1, 2, 4, 8) for c in (r, 2 * r) if r * c <= most]
        shapes = [{"grid_rows": rows, "grid_columns": columns} for rows, columns in sides]
    structure = next(
        (name for name in _STRUCTURE_PARAMETERS if get_origin(hints.get(name)) is Literal), None
    )
    kinds: list[dict[str, Any]] = [{}]
    if structure and structure not in own:
        kinds = [{structure: value} for value in get_args(hints[structure])]
    return product(reversed(shapes), kinds)


def _sized(plan: Plan, parameters: Mapping[str, Any], kind: str) -> Candidate:
    graph = plan.graph(pairs=False)
    roles = graph.roles.items()
    on = Counter(graph.placement[actor] for actor, role in roles if role not in END_ROLES)
    threads = int(parameters.get("threads", 1)) or 1
    return Candidate(
        topology=plan.topology.name,
        parameters=parameters,
        kind=kind,
        pes=on.total(),
        machines=len(on),
        cores=sum(max(min(n, plan.config.network.cores), threads) for n in on.values()),
    )


class _Round(NamedTuple):
    """A round before the last: over which part of the streams, and what goes on.

    *part* is one tuple in so many, but at least *least_rows* of each stream. One candidate in
    *keep* goes on, but at least *least*. It has to end in *share* of the time.
    """

    part: int
    least_rows: int
    keep: int
    least: int
    share: float


_ROUNDS = (
    _Round(part=16, least_rows=200, keep=3, least=4, share=0.3),
    _Round(part=16, least_rows=200, keep=3, least=3, share=0.4),
    _Round(part=4, least_rows=400, keep=2, least=1, share=0.6),
)
_LAST_SHARE = 0.85
_HOPELESS = 4
"""A run that has taken so many times as long as its round's best will not be among the better."""
_FED_MESSAGES = 1_000
"""Messages of tuples in a run at the caller's rate: a slow one has few tuples in each."""


class _OverError(Exception):
    """There is no time left."""


class _HopelessError(Exception):
    """A run that is not worth finishing, and why."""


class _WrongError(Exception):
    """A run whose answer was wrong."""


@dataclass
class Spent:
    """What searches have cost."""

    runs: int = 0
    """Simulations that ended."""
    tuples: int = 0
    """Those they took."""
    left_out: list[str] = field(default_factory=list)
    """What there was no time for."""
    given_up: list[str] = field(default_factory=list)
    """What was stopped, and why."""
    failed: list[str] = field(default_factory=list)
    """What failed, and why."""
    begun: float = field(default_factory=time.monotonic)
    """When the first one began, by `time.monotonic`."""


@dataclass
class Search:
    """A search under way."""

    config: RunConfig
    """The query, its data and the network."""
    prepare: Prepare
    """Returns the query's streams."""
    goals: Sequence[str]
    """Names of `GOALS`, the most important first."""
    rate_tps: int | None
    """The caller's own rate; None where only saturation is looked at."""
    rows: int
    """Tuples of each stream in the longest runs."""
    budget_s: float
    """Real seconds for all: no run starts after its round's share of it, and one that goes on then
    is stopped."""
    seeds: int = 1
    """With how many the last round runs."""
    on_round: Callable[[str, int, int], None] = lambda what, done, total: None
    """Called with what is done, how many runs of it have ended, and how many there are."""
    spent: Spent = field(default_factory=Spent)
    """What it has cost until now."""
    share: float = 1.0
    """The share of the time that this round may take."""
    give_up: bool = True
    """Whether a run that has become hopeless is stopped."""

    @property
    def seconds_left(self) -> float:
        """Real seconds until this round has to end."""
        return self.spent.begun + self.share * self.budget_s - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether this round has to end now; never before one run has ended."""
        return self.spent.runs > 0 and self.seconds_left < 0

    def run(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that ran, the best first; those of a kind come most PEs first."""
        known = {one.label: one for one in chosen}
        going = list({one.kind: one for one in reversed(chosen)}.values())[::-1]
        of = len(_ROUNDS) + 1
        for number, round_ in enumerate(_ROUNDS, 1):
            rows = min(self.rows, max(round_.least_rows, self.rows // round_.part))
            self.share = round_.share
            new = [one for one in going if one.rows < rows]
            ran = self.simulate_all(new, rows, f"round {number} of {of}")
            known |= {one.label: one for one in ran}
            going = [known[one.label] for one in going]
            ran = [one for one in going if one.rows == rows] or going
            going = _varied(self.ranked(ran), max(round_.least, len(ran) // round_.keep))
            if number == 1:
                kinds = [one.kind for one in going]
                going = [one for kind in kinds for one in known.values() if one.kind == kind]
        self.share, called = _LAST_SHARE, f"round {of} of {of}"
        while True:
            ran = self.simulate_all(going, self.rows, called, last=True)
            known |= {one.label: one for one in ran}
            ranked = self.ranked([one for one in known.values() if one.rows])
            if not ranked or any(one.rows for one in ran):
                return ranked
            going = ranked[:1]  # all were wrong: the next one is judged, too, before it is best

    def simulate_all(
        self, going: Sequence[Candidate], rows: int, called: str, *, last: bool = False
    ) -> list[Candidate]:
        """Run all of *going* over *rows* tuples; return them with what each came to."""
        best_ns: dict[int | None, int] = {}
        ran = list(going)
        for place, before in enumerate(going):
            self.on_round(called, place, len(going))
            one = replace(before, rows=rows, last=last, saturated=(), fed=(), keeps_up=None)
            try:
                ran[place] = self._simulate(one, before, best_ns)
            except _OverError:
                count = f"{len(going) - place} of {len(going)} candidates"
                self.spent.left_out.append(f"{called}: {count}")
                break
            except _HopelessError as error:
                self.spent.given_up.append(f"{before.label}: {error}")
            except _WrongError:
                ran[place] = replace(one, rows=0, last=False)
                self.spent.failed.append(f"{before.label}: its answer was wrong")
            except Exception as error:  # one system's fault must not lose the others
                self.spent.failed.append(f"{before.label}: {error}")
        return ran

    def _simulate(
        self, one: Candidate, before: Candidate, best_ns: dict[int | None, int]
    ) -> Candidate:
        """Return *one* with what it came to, as far as there was time; *before* it ran shorter."""
        if self.is_over:
            raise _OverError
        try:
            for seed in range(self.seeds if one.last else 1):
                for rate_tps in self._rates(last=one.last):
                    found, keeps_up = self._run_one(one, rate_tps, seed, best_ns)
                    if rate_tps is not None:
                        keeps_up = keeps_up if one.keeps_up is None else keeps_up and one.keeps_up
                        one = replace(one, fed=(*one.fed, found), keeps_up=keeps_up)
                        continue
                    if not one.last:
                        found["throughput_tps"] = self._extrapolated(before, found, one.rows)
                    one = replace(one, saturated=(*one.saturated, found))
                twice = [one.values(name)[-2:] for name in self.goals]
                if all(len(two) == 2 and two[0] == two[1] for two in twice):
                    break  # nothing random enters it
        except (_OverError, _HopelessError) as error:
            if not (one.saturated or one.fed):
                raise
            if isinstance(error, _HopelessError):
                one = replace(one, keeps_up=False)
        return one

    def _rates(self, *, last: bool) -> list[int | None]:
        """Return the rates to run at: None at saturation, the caller's where a goal is of it."""
        if self.rate_tps is None:
            return [None]
        if last:
            return [None, self.rate_tps]
        of_goals = sorted({GOALS[name].saturated for name in self.goals}, reverse=True)
        return [None if saturated else self.rate_tps for saturated in of_goals]

    def _extrapolated(self, before: Candidate, found: Mapping[str, Any], rows: int) -> float:
        """Return the throughput over all tuples, if what is left runs as the last part did."""
        tuples, seconds = float(found["tuples"]), float(found["virtual_seconds"])
        if before.saturated:
            more = tuples - before.saturated[0]["tuples"]
            longer_s = seconds - before.saturated[0]["virtual_seconds"]
            if more > 0 and longer_s > 0:
                left = tuples * (self.rows / rows - 1)
                tuples, seconds = tuples + left, seconds + left * longer_s / more
        return tuples / max(1e-9, seconds)

    @property
    def fed_rows(self) -> int:
        """Tuples of each stream in a run at the caller's rate: a window and `_FED_MESSAGES`."""
        feeding = self.config.feeding
        gathered = (self.rate_tps or 0) * feeding.linger // NS_PER_S
        each = feeding.batch_rows or max(1, gathered)
        return min(self.rows, _window_rows(self.config) + _FED_MESSAGES * each)

    def _run_one(
        self, one: Candidate, rate_tps: int | None, seed: int, best_ns: dict[int | None, int]
    ) -> tuple[dict[str, Any], bool | None]:
        """Return the record of one run, and whether it kept up with its rate.

        Only the last round's runs, and those whose latency counts, are written and judged; of
        others the record has what is counted as they run. A run is given up where it takes much
        longer than the best of *best_ns*, by rate.
        """
        rows = one.rows if rate_tps is None else min(one.rows, self.fed_rows)
        settings = {"rows": rows, "feeding.rate_tps": rate_tps, "seed": self.config.seed + seed}
        plan = make_plan(change(one.configure(self.config), settings), prepare=self.prepare)
        line = _GivingUp(self, best_ns.get(rate_tps) if self.give_up else None)
        keeps_up = None
        if one.last or "latency" in self.goals:
            with TemporaryDirectory(prefix="joinsim-") as folder:
                finished = execute(plan, Path(folder), line=line, rehearsal=False)
                if finished.verdict.passed is False:
                    raise _WrongError
                found, outcome = record(finished), finished.outcome
                keeps_up = None if rate_tps is None else is_sustained(finished)
        else:
            ran = simulate(plan, None, pairs=False, line=line)
            found, outcome = _counted(plan, ran), ran.outcome
        found["network"]["each"] = outcome.nbytes / max(1, outcome.tuples)
        self.spent.tuples += outcome.tuples
        self.spent.runs += 1
        best_ns[rate_tps] = min(outcome.virtual_ns, best_ns.get(rate_tps, outcome.virtual_ns))
        return found, keeps_up

    def ranked(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return *chosen*, the best first: the last round, longer runs, who keeps up, the goals.

        Of several goals, what fewer others beat in all of them comes first.
        """
        scores = {one.label: self._scores(one) for one in chosen}

        def key(one: Candidate) -> tuple[Any, ...]:
            mine = scores[one.label]
            beaten = sum(_beats(other, mine) for other in scores.values())
            return (not one.last, -one.rows, one.keeps_up is False, beaten, *mine)

        return sorted(chosen, key=key)

    def front(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return those of *chosen* that no other one beats."""
        scores = [self._scores(one) for one in chosen]
        return [
            one
            for one, mine in zip(chosen, scores, strict=True)
            if not any(_beats(other, mine) for other in scores)
        ]

    def _scores(self, one: Candidate) -> tuple[float, ...]:
        """Return a number per goal, the lower the better."""
        scores = []
        for goal in self.goals:
            values = one.values(goal)
            mean = fmean(values) if values else float("inf")
            scores.append(-mean if GOALS[goal].highest and values else mean)
        return tuple(scores)


@dataclass
class _GivingUp(Line):
    """Ends a run when *search* is over, or when it takes much longer than the best, if given."""

    search: Search
    best_ns: int | None

    def on_run(self, at: Progress, seconds: float) -> None:
        """Raise :exc:`_OverError` or :exc:`_HopelessError`."""
        if self.search.is_over:
            raise _OverError
        if self.best_ns is not None and at.now_ns > _HOPELESS * self.best_ns:
            raise _HopelessError(f"it takes more than {_HOPELESS} times as long as the best")


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether scores are better in some goals, and as good in the others."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _varied(ranked: Sequence[Candidate], places: int) -> list[Candidate]:
    """Return the first of *ranked*, and in every fourth place the best of another topology.

    A short prefix tells structures apart better than topologies, of which some start slowly.
    """
    chosen = list(ranked[: places - places // 4])
    known = {one.topology for one in chosen}
    others = [one for name, one in best_of_topologies(ranked).items() if name not in known]
    chosen += sorted(others, key=ranked.index)[: places - len(chosen)]
    return chosen + [one for one in ranked if one not in chosen][: places - len(chosen)]


def _counted(plan: Plan, ran: RunFigures) -> dict[str, Any]:
    """Return the figures of a run that are counted while it runs."""
    roles = plan.graph(pairs=False).roles.items()
    stored = sum(ran.state_bytes.get(actor, 0) for actor, role in roles if role not in END_ROLES)
    return {
        "tuples": ran.outcome.tuples,
        "virtual_seconds": ran.outcome.virtual_ns / NS_PER_S,
        "throughput_tps": ran.throughput_tps,
        "latency_ms": {"p95": None},
        "network": {"bytes": ran.outcome.nbytes},
        "state_bytes": {"total": stored},
    }


def _window_rows(config: RunConfig) -> int:
    """Return how many tuples of a stream its window has; 0 where that goes by time."""
    query = bound_query(config.query, config.bind)
    if query.window is None or any(one.kind != "count" for one in query.windows):
        return 0
    return max(one.length for one in query.windows)
