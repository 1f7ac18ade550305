"""Join queries: which streams, which predicates, which windows or interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from joins.batch import Schema
from joins.errors import JoinsimError, suggest
from joins.queries.conditions import Condition, Field, Operator
from joins.queries.interval import TIME_FIELD, Interval, IntervalClause
from joins.queries.windows import ExtentError, StreamWindows, Window, WindowClause


class QueryError(JoinsimError, ValueError):
    """A query that cannot be evaluated; names the part and what is allowed.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.run("SELECT * FROM A", {})
    ... except js.QueryError as error:
    ...     print(str(error).splitlines()[0])
    line 1, character 16 of the query: expected WHERE or a comma, but the text ends
    """


@dataclass(frozen=True, kw_only=True)
class Predicate:
    """``left OP right``, or ``ABS(left - right) OP width``.

    Attributes
    ----------
    left, right
        The two sides: of different streams, or of different roles.
    operator
        How they are compared.
    """

    left: Field
    operator: Operator
    right: Field

    def __str__(self) -> str:
        return self.operator.text(self.left.text, self.right.text)

    @property
    def fields(self) -> tuple[Field, Field]:
        """Both sides."""
        return self.left, self.right


@dataclass(frozen=True, kw_only=True)
class JoinQuery:
    """A join of a stream with itself, or of several streams."""

    select: tuple[str, ...]
    """What to output, as spelt; joinsim always outputs ids."""
    streams: tuple[str, ...]
    """Names, one for a self join."""
    predicates: tuple[Predicate, ...]
    """A pair must satisfy all of them."""
    window: WindowClause | StreamWindows | None = None
    """One for every stream, or one for each; None in an interval join."""
    interval: IntervalClause | None = None
    """How far two tuples may be apart in event time; None in a window join."""

    def __post_init__(self) -> None:
        if (self.window is None) == (self.interval is None):
            raise QueryError("a query has a window or an interval: one of the two")
        windows = self.window
        if isinstance(windows, StreamWindows) and sorted(windows.streams) != sorted(self.streams):
            raise QueryError(
                f"WINDOW is over {', '.join(windows.streams)}; write one for all, WINDOW AS (...), "
                f"or one for each of {', '.join(self.streams)}"
            )
        self._check_contradictions()

    def _check_contradictions(self) -> None:
        possible: dict[frozenset[Field], frozenset[int]] = {}
        before: dict[frozenset[Field], list[Predicate]] = {}
        for predicate in self.predicates:
            sides = frozenset(predicate.fields)
            earlier = before.setdefault(sides, [])
            earlier.append(predicate)
            operator = predicate.operator
            if predicate.left != earlier[0].left:
                operator = operator.mirrored
            possible[sides] = possible.get(sides, frozenset((-1, 0, 1))) & operator.signs
            if not possible[sides]:
                raise QueryError(
                    f"{' and '.join(map(str, earlier))} contradict each other: no pair of tuples "
                    "satisfies them all"
                )

    def __str__(self) -> str:
        conditions = [str(predicate) for predicate in self.predicates]
        if self.interval:
            conditions.insert(self.interval.place, str(self.interval))
        where = "\nAND ".join(conditions)
        clause = self.window if isinstance(self.window, StreamWindows) else f"AS ({self.window})"
        window = f"\nWINDOW {clause}" if self.window else ""
        return (
            f"SELECT {', '.join(self.select)}\nFROM {', '.join(self.streams)}\n"
            f"WHERE {where}{window}"
        )

    def bind(self, **values: str) -> JoinQuery:
        """Replace names in the window clause or the interval by values: ``bind(W="10 min")``.

        Raise :exc:`QueryError` for a name that is not there.
        """
        clause = self.window or self.interval
        assert clause is not None  # one of the two: __post_init__
        for name in values:
            if name not in clause.names:
                kind = "window clause" if self.window else "interval"
                raise QueryError(f"the {kind} has no {name!r} to bind: it is {clause}")
        return replace(
            self,
            window=self.window and self.window.bind(values),
            interval=self.interval and self.interval.bind(values),
        )

    @property
    def is_self_join(self) -> bool:
        """Whether one stream is joined with itself."""
        return len(self.streams) == 1

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows, one per stream.

        Raise :exc:`QueryError` when a name is not bound, a window is impossible, or the query has
        an interval.
        """
        if self.window is None:
            raise QueryError(f"an interval join has no window: {self.interval}")
        if isinstance(self.window, StreamWindows):
            clauses = dict(zip(self.window.streams, self.window.clauses, strict=True))
        else:
            clauses = dict.fromkeys(self.streams, self.window)
        windows = []
        for stream in self.streams:
            try:
                windows.append(clauses[stream].window)
            except ExtentError as error:
                raise QueryError(f"window {clauses[stream]}: {error}") from None
        return tuple(windows)

    @property
    def bound_interval(self) -> Interval:
        """The interval in nanoseconds, its names bound.

        Raise :exc:`QueryError` when a name is not bound, the interval is impossible, or the query
        has a window.
        """
        if self.interval is None:
            raise QueryError(f"a window join has no interval: {self.window}")
        try:
            return self.interval.interval
        except ExtentError as error:
            raise QueryError(f"{self.interval}: {error}") from None

    @property
    def times(self) -> tuple[str, ...]:
        """How the event time of each stream is spelt: `TIME_FIELD`, or the raw data's column."""
        spelt = dict.fromkeys(range(len(self.streams)), TIME_FIELD)
        if self.interval:
            spelt |= {field.stream: field.name for field in self.interval.fields}
        return tuple(spelt.values())

    @property
    def key(self) -> int | None:
        """Place of the first predicate that is an equality: tuples join only with equal keys."""
        equalities = (i for i, p in enumerate(self.predicates) if p.operator.is_equality)
        return next(equalities, None)

    def stored_stream(self, probing: int) -> int:
        """Return the stream that tuples of stream *probing* look into.

        Raise :exc:`QueryError` when more than two streams are joined: each then has several.
        """
        if len(self.streams) > 2:
            raise QueryError(
                f"the query joins {len(self.streams)} streams, {', '.join(self.streams)}; a tuple "
                "looks into one only in a join of a stream with itself or of two streams"
            )
        return probing if self.is_self_join else 1 - probing

    def fields(self, stream: int) -> tuple[str, ...]:
        """Return the join fields of a stream, in the order of their first use."""
        used = [field for predicate in self.predicates for field in predicate.fields]
        return tuple(dict.fromkeys(field.name for field in used if field.stream == stream))

    def conditions(self, probing: int, schemas: Sequence[Schema]) -> tuple[Condition, ...]:
        """Return the predicates as tuples of stream *probing* see them, in their order.

        Raise :exc:`QueryError` naming a field that a stream does not have, and those it has.
        """
        return self.conditions_between(probing, self.stored_stream(probing), schemas)

    def conditions_between(
        self, probing: int, stored: int, schemas: Sequence[Schema]
    ) -> tuple[Condition, ...]:
        """Return the predicates between two streams as tuples of stream *probing* see them.

        Raise :exc:`QueryError` naming a field that a stream does not have, and those it has.
        """
        return tuple(
            self._condition(predicate, probing, schemas)
            for predicate in self.predicates
            if {predicate.left.stream, predicate.right.stream} == {probing, stored}
        )

    def check_fields(self, schemas: Sequence[Schema]) -> None:
        """Raise :exc:`QueryError` naming a field that a stream does not have, and those it has."""
        for predicate in self.predicates:
            for field in predicate.fields:
                _dtype(field, schemas)

    def _condition(
        self, predicate: Predicate, probing: int, schemas: Sequence[Schema]
    ) -> Condition:
        left, right = predicate.left, predicate.right
        left_probes = left.role == 1 if self.is_self_join else left.stream == probing
        probe, stored = (left, right) if left_probes else (right, left)
        whole = all(_dtype(field, schemas) == "int64" for field in (probe, stored))
        return Condition(
            probe_field=probe.name,
            stored_field=stored.name,
            operator=predicate.operator.mirrored if left_probes else predicate.operator,
            dtype="int64" if whole else "float64",
        )


class JoinSides:
    """What a stream's tuples probe with and are stored for, where one or two streams are joined."""

    def __init__(
        self, query: JoinQuery, schemas: Sequence[Schema], places: Iterable[int] | None = None
    ) -> None:
        chosen = range(len(query.predicates)) if places is None else tuple(places)
        streams = range(len(query.streams))
        conditions = [query.conditions(stream, schemas) for stream in streams]
        self.stored_stream = [query.stored_stream(stream) for stream in streams]
        """Per probing stream the one it probes."""
        self.probing = [tuple(of_stream[place] for place in chosen) for of_stream in conditions]
        self.storing = [self.probing[other] for other in self.stored_stream]
        """Per stream the conditions that its tuples probe with, and those that they are stored for:
        those of the query's predicates at *places*, in this order, or of all."""


def _dtype(field: Field, schemas: Sequence[Schema]) -> str:
    schema = schemas[field.stream]
    if field.name not in schema.fields:
        raise QueryError(
            f"{field.text}: stream {schema.stream!r} has no field {field.name!r}; "
            f"{suggest(field.name, schema.fields, 'it has')}"
        )
    return schema.fields[field.name]
