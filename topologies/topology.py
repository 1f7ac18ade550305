"""What a topology is: a named builder of actor graphs, and what it promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from traceback import extract_tb
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_type_hints

import networkx as nx
import pyarrow as pa
from annotated_types import Interval
from pydantic import ConfigDict

from actors.feed import StreamData, StreamTable
from actors.source import Feeding
from joins.batch import Schema
from joins.errors import JoinsimError, suggest
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from joins.queries.windows import StreamWindows
from joins.semijoins.value_sample import TupleSample
from netsim.cost import CostProfile, load_profile
from netsim.network import PRESETS, full_mesh
from topologies.actor_graph import ActorGraph
from topologies.quantities import NUMBER

STRICT = ConfigDict(extra="forbid")
"""For dataclasses of parameters: a key that means nothing is refused, not ignored."""

SinkPlace = Literal["partitioned", "single"]
"""Where results go: they stay at the PEs that find them, or all meet in one sink."""

PES_MOST = 10_000
"""PEs that a run may have."""

Pes = Annotated[int, Interval(ge=1, le=PES_MOST), NUMBER]
"""For parameters: a number of PEs, or of machines; in a rehearsal there are few."""
_FEW_PES = 4


P = TypeVar("P")
"""The class of a topology's parameters."""


class TopologyError(JoinsimError, ValueError):
    """A topology that cannot be built; names the parameter or query part and what is allowed.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.show("split_jion")
    ... except js.TopologyError as error:
    ...     print(str(error).partition(";")[0].partition("?")[0])
    no topology is called 'split_jion': did you mean 'split_join'
    """


class TopologyFaultError(TopologyError):
    """A topology whose own code raised something else; names the exception and its place."""


def unused_notes(parameters: Any, subjects: Mapping[str, str]) -> tuple[str, ...]:
    """Return a note on each parameter that is not at its default and changes nothing.

    Parameters
    ----------
    parameters
        Those of a topology.
    subjects
        Parameter to what does not depend on it, in the singular.
    """
    defaults = type(parameters)()
    values = {name: getattr(parameters, name) for name in subjects}
    return tuple(
        f"{name} = {value!r}: {subjects[name]} does not depend on it"
        for name, value in values.items()
        if value != getattr(defaults, name)
    )


def _wide_area(sites: Iterable[str]) -> nx.Graph:
    return full_mesh(sites, PRESETS["wan"])


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a topology is to be built for."""

    query: JoinQuery
    """The join."""
    files: tuple[StreamData, ...]
    """The prepared streams, in the order of the query."""
    feeding: Feeding
    """How sources feed them in."""
    pairs: bool = False
    """Whether joiners must report match ids, not only counts and fingerprints."""
    profile: CostProfile = field(default_factory=load_profile)
    """What work costs, for systems that schedule work on cores of their own."""
    network: Callable[[Iterable[str]], nx.Graph] = _wide_area
    """Returns the network over some sites, for systems that choose by it while they run."""
    live: bool = False
    """Whether actors run on a real engine at full speed, where what is simulated of a machine
    inside one of them must be real."""
    sink: SinkPlace = "partitioned"
    """Where results go."""

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """One per stream of the query."""
        return tuple(file.schema for file in self.files)

    @property
    def join(self) -> dict[str, Any]:
        """The arguments of actors that join: the query and its schemas."""
        return {"query": self.query, "schemas": self.schemas}

    @property
    def windows(self) -> dict[str, Any]:
        """The arguments of actors that compute the window of every tuple."""
        return {"windows": self.query.windows}

    @property
    def input(self) -> dict[str, Any]:
        """The arguments of sources: the streams, and how they are fed in."""
        return {"files": self.files, "feeding": self.feeding}


@dataclass(frozen=True, kw_only=True)
class Approximation:
    """What a run leaves out on purpose."""

    kept: tuple[TupleSample, ...]
    """Which tuples of each stream it keeps; a result stays with the probability of its value."""
    byte_budget: int | None
    """Most bytes a second that any link may carry, both ways together, on average; None for any."""
    exact: bool = True
    """Whether it claims exactly the results of what it keeps."""


class Topology(ABC, Generic[P]):
    """A published join system, or a baseline, whose parameters are a `P`.

    A system of your own is a subclass, with a frozen dataclass of its parameters (all with
    defaults, documented). Pass it to what runs, compares, shows or checks it, or let an
    installed package register it (`topologies.registry`).

    Attributes
    ----------
    name
        As on the command line.
    title
        One line for lists.
    paper
        Where it was published.
    exact
        Whether it claims every run's answer to be exactly right, left at its defaults.
    parameters_type
        Frozen dataclass of what a person may set, validated where it is made.
    example_query
        A query it can evaluate, to show the graph for; SPO-Join's Q1 unless it cannot.
    needs_equality
        Whether one predicate of a query must be ``=``.
    within_interval
        Whether it joins within an interval of event time; else over windows.
    window_per_stream
        Whether each of two streams may have a window of its own.
    out_of_order
        Whether it joins streams that arrive out of order over windows of event time.
    multiway
        Whether it joins any number of different streams, each over a window of its own; else one
        stream with itself or two, over one window for all.

    Examples
    --------
    >>> import joinsim as js
    >>> from topologies.window_join import SplitJoinTopology
    >>> class Mine(SplitJoinTopology):  # or of `Topology` itself: see `new_topology`
    ...     name, title = "mine", "SplitJoin under a name of its own"
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> js.run(query, {"T": {"x": [3, 1, 2]}}, topology=Mine, pes=2).verdict.exact
    True
    """

    name: str
    title: str
    paper: str
    exact: bool
    parameters_type: type[P]
    example_query: str = (
        "SELECT R.POW_ID, S.POW_ID FROM R, S "
        "WHERE R.POWER < S.POWER AND R.COOL > S.COOL "
        "WINDOW AS (SLIDE INTERVAL '10' ON '60')"
    )
    needs_equality: bool = False
    within_interval: bool = False
    window_per_stream: bool = False
    out_of_order: bool = False
    multiway: bool = False

    def example(self) -> Job:
        """Return a job to look at the graph with: it can be built, not run."""
        return self.sketch(parse_query(self.example_query))

    def sketch(self, query: JoinQuery) -> Job:
        """Return a job for *query* without data, as if every field were int64."""
        tables = []
        for stream, name in enumerate(query.streams):
            schema = Schema(stream=name, fields=dict.fromkeys(query.fields(stream), "int64"))
            columns = [(column, pa.int64()) for column in ("ts", *schema.fields)]
            tables.append(StreamTable(schema=schema, table=pa.schema(columns).empty_table()))
        return Job(query=query, files=tuple(tables), feeding=Feeding())

    def claims_exact(self, parameters: P) -> bool:
        """Return whether a run with *parameters* claims to be exactly right.

        Override it where a parameter chooses a variant that its paper shows to be wrong.
        """
        return self.exact

    def approximation(self, query: JoinQuery, parameters: P) -> Approximation | None:
        """Return what a run leaves out on purpose; None for nothing.

        Override it where a parameter trades results for resources.
        """
        return None

    def notes(self, job: Job, parameters: P) -> tuple[str, ...]:
        """Return remarks on *parameters* that have less effect than they seem to."""
        return ()

    def in_miniature(self, parameters: P) -> P:
        """Return *parameters* for a run of some dozens of tuples through the same kernels.

        Of PEs there are few: more would run the same kernels. Override it where parameters are
        sizes that must fit the query's windows.
        """
        counts = {
            name: min(count, _FEW_PES)
            for name, hint in get_type_hints(type(parameters), include_extras=True).items()
            if Pes in (hint, *get_args(hint)) and (count := getattr(parameters, name))
        }
        return replace(parameters, **counts)  # type: ignore[type-var]

    def fitted(self, job: Job, parameters: P, network: nx.Graph) -> P:
        """Return *parameters* with what is left to the system chosen for its data and network.

        Override it where a system optimises by estimated costs; *network* is over its sites.
        """
        return parameters

    def warnings(self, query: JoinQuery, parameters: P, network: nx.Graph) -> tuple[str, ...]:
        """Return warnings to show before a run over *network*, a sentence each.

        Override it where a system relies on something that the network may not provide.
        """
        return ()

    def build(self, job: Job, parameters: P) -> ActorGraph:
        """Return the graph of actors for *job*.

        Raise :exc:`TopologyError` when the query is not one the system can evaluate, or when
        *parameters* do not fit it, and :exc:`TopologyFaultError` as `naming_faults` does.
        """
        self._refuse_other_joins(job.query)
        if job.feeding.disorder is not None and job.query.window is not None:
            self._refuse_disorder(job.query)
        with self.naming_faults():
            graph = self.assemble(job, parameters)
        self._refuse_no_graph(graph)
        if job.sink == "partitioned":
            graph.partition_sinks()
        return graph

    @contextmanager
    def naming_faults(self) -> Iterator[None]:
        """Raise what a block of the topology's own code raises as :exc:`TopologyFaultError`.

        Errors that the user can fix pass through.
        """
        try:
            yield
        except JoinsimError:
            raise
        except Exception as error:
            frames = extract_tb(error.__traceback__)
            codes = (getattr(value, "__code__", None) for value in vars(type(self)).values())
            own = {code.co_filename for code in codes if code is not None}
            place = next((at for at in reversed(frames) if at.filename in own), frames[-1])
            raise TopologyFaultError(
                f"{self.name} has a fault: {type(error).__name__}: {error} "
                f"({place.filename}, line {place.lineno})"
            ) from error

    @abstractmethod
    def assemble(self, job: Job, parameters: P) -> ActorGraph:
        """Return the graph for a query that joins as this system does, with one sink.

        Raise :exc:`TopologyError` for what else is wrong with it.
        """

    def _refuse_no_graph(self, graph: Any) -> None:
        """Refuse what `assemble` returned if it is no graph, or has channels to nobody."""
        if not isinstance(graph, ActorGraph):
            raise TopologyFaultError(
                f"{self.name} has a fault: assemble returned {graph!r}, and not an ActorGraph"
            )
        actors = {name: spec for name, spec in graph.specs.items() if spec}
        for sender, receiver, port in graph.edges(data="port"):
            for name in (sender, receiver):
                if name not in actors:
                    raise TopologyFaultError(
                        f"{self.name} has a fault: port {port!r} of {sender} is connected to "
                        f"{receiver}, and no actor is called {name!r}: {suggest(name, actors)}"
                    )

    def _refuse_disorder(self, query: JoinQuery) -> None:
        if any(window.kind == "count" for window in query.windows):
            raise TopologyError(
                f"arrival or feeding.disorder: the window {query.window} has the tuples that came "
                "last, so each disorder would have an answer of its own; use a window of time"
            )
        if not self.out_of_order:
            raise TopologyError(
                f"arrival or feeding.disorder: {self.name} takes the order of arrival for that of "
                "event time; over windows of time panjoin joins streams out of order, and so do "
                "interval joins"
            )

    def _refuse_other_joins(self, query: JoinQuery) -> None:
        if self.multiway and query.is_self_join:
            raise TopologyError(
                f"{self.name} joins streams of different sites; the query joins "
                f"{query.streams[0]} with itself: load its data under two names"
            )
        if not self.multiway and len(query.streams) > 2:
            raise TopologyError(
                f"{self.name} joins one stream with itself or two streams; the query has "
                f"{len(query.streams)}: {', '.join(query.streams)}"
            )
        own_windows = self.multiway or self.window_per_stream
        if not own_windows and isinstance(query.window, StreamWindows):
            raise TopologyError(
                f"{self.name} joins over one window for all streams; the query has one for each: "
                f"{query.window}"
            )
        if self.within_interval and query.interval is None:
            raise TopologyError(
                f"{self.name} joins within an interval of event time; the query has a window "
                f"instead: {query.window}. Write it as in B.ts BETWEEN A.ts - INTERVAL '100 ms' "
                "AND A.ts + INTERVAL '100 ms'"
            )
        if not self.within_interval and query.window is None:
            raise TopologyError(
                f"{self.name} joins over windows; the query has an interval: {query.interval}"
            )
