"""From a world that fails to a small one that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from joins.queries.parser import parse_query
from joins.queries.query import QueryError
from scenarios.worlds.world import World, WorldStream

TRIES_MAX = 300
"""Worlds that are tried, by default: most failures are small after a hundred."""

_FEATURES = ("recovery", "network", "feeding", "parameters")
_OPTIONAL = ("faults", *_FEATURES, "sink", "segment_rows")


def shrink(world: World, fails: Callable[[World], bool], *, tries: int = TRIES_MAX) -> World:
    """Return the smallest world found that *fails* as *world* does.

    Features are left out, predicates dropped, streams halved, and numbers made small, as long as
    one of these still fails; at most *tries* worlds are tried.
    """
    smaller = _smaller(world)
    for _ in range(tries):
        candidate = next(smaller, None)
        if candidate is None:
            break
        if fails(candidate):
            world = candidate
            smaller = _smaller(world)
    return world


def _smaller(world: World) -> Iterator[World]:
    """Yield worlds that are a little simpler, those first that leave out most."""
    yield from _without_features(world)
    yield from _with_fewer_tuples(world)
    yield from _with_fewer_predicates(world)
    yield from _with_smaller_numbers(world)


def _without_features(world: World) -> Iterator[World]:
    plain = World(topology=world.topology, query=world.query, streams=world.streams)
    for name in _OPTIONAL:
        if getattr(world, name) != (default := getattr(plain, name)):
            yield replace(world, **{name: default})
    for at in range(len(world.faults)):
        yield replace(world, faults=world.faults[:at] + world.faults[at + 1 :])
    for name in _FEATURES:
        for key in (values := getattr(world, name)):
            yield _with_values(world, name, {k: v for k, v in values.items() if k != key})


def _with_fewer_tuples(world: World) -> Iterator[World]:
    """Leave out half of a stream, then quarters of it, down to single tuples."""
    longest = max((len(stream.ts) for stream in world.streams), default=0)
    size = (longest + 1) // 2
    while size:
        for place, stream in enumerate(world.streams):
            for begin in range(0, len(stream.ts), size):
                left = _without(stream, begin, begin + size)
                yield _with_stream(world, place, left)
        size //= 2


def _with_fewer_predicates(world: World) -> Iterator[World]:
    query = parse_query(world.query)
    for dropped in query.predicates:
        rest = tuple(one for one in query.predicates if one is not dropped)
        text = str(replace(query, predicates=rest)).replace("\n", " ")
        try:
            parse_query(text)
        except QueryError:  # one is needed, or a key
            continue
        yield replace(world, query=text)


def _with_smaller_numbers(world: World) -> Iterator[World]:
    for name in _FEATURES:
        for key, value in (values := getattr(world, name)).items():
            if type(value) is int and value > 1:
                for less in dict.fromkeys((1, value // 2, value - 1)):
                    yield _with_values(world, name, values | {key: less})
    for place, stream in enumerate(world.streams):
        rows = len(stream.ts)
        if any(stream.x):
            yield _with_stream(world, place, replace(stream, x=[0.0] * rows))
        if any(stream.y):
            yield _with_stream(world, place, replace(stream, y=[0] * rows))


def _with_values(world: World, section: str, values: dict[str, Any]) -> World:
    changes: dict[str, Any] = {section: values}
    return replace(world, **changes)


def _with_stream(world: World, place: int, stream: WorldStream) -> World:
    streams = list(world.streams)
    streams[place] = stream
    return replace(world, streams=tuple(streams))


def _without(stream: WorldStream, begin: int, end: int) -> WorldStream:
    return WorldStream(
        **{name: column[:begin] + column[end:] for name, column in vars(stream).items()}
    )
