"""What a query selects: columns of its streams, named as it spells them.

In a self join ``x1`` is of the newer tuple and ``x2`` of the earlier one; without a suffix it is
the newer's. Where there are columns ``x`` and ``x2``, ``x2`` is the earlier tuple's ``x``, as it is
in a predicate, and ``x21`` the newer one's ``x2``. ``*`` stands for all columns of all streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from joins.errors import suggest
from joins.queries.query import JoinQuery, QueryError

STAR = "*"


@dataclass(frozen=True, kw_only=True)
class Selected:
    """A column to output."""

    name: str
    """As the query spells it."""
    stream: int
    """Place of its stream in the query."""
    column: str
    """Its name in the stream."""
    earlier: bool = False
    """Whether it is of the earlier tuple of a self join."""


def select(query: JoinQuery, columns: Sequence[Mapping[str, str]]) -> list[Selected]:
    """Return what *query* selects of its streams.

    *columns* has, for each stream, its columns to the names that queries have for them.

    Raise :exc:`QueryError` for a column that no stream has, with the nearest that there is, for one
    that several have, and for an ``id`` that is joined by and is not there, or not alone.
    """
    _check_ids(query, columns)
    chosen: list[Selected] = []
    for item in query.select:
        if item == STAR:
            chosen += _all(query, columns)
        else:
            chosen.append(_one(query, columns, item))
    return list({one.name: one for one in chosen}.values())


def _check_ids(query: JoinQuery, columns: Sequence[Mapping[str, str]]) -> None:
    """Refuse an ``id`` that is joined by, of a source that has a column ``source_id``."""
    for predicate in query.predicates:
        for side in predicate.fields:
            names, own = columns[side.stream], side.name.removeprefix("source_")
            if side.name in side.text or names.get(side.name) == own:
                continue
            stream = f"{predicate}: stream {query.streams[side.stream]!r}"
            if "id" in names:  # which is the position alone
                known = [name for column, name in names.items() if column != "id"]
                raise QueryError(f"{stream} has no column {own!r}; {suggest(own, known)}")
            raise QueryError(
                f"{stream} has columns {own!r} and {side.name!r}, and a column {own!r} is called "
                f"{side.name!r} here, where the id is a tuple's position; rename one of them"
            )


def _all(query: JoinQuery, columns: Sequence[Mapping[str, str]]) -> Iterator[Selected]:
    if query.is_self_join:
        (stream,) = query.streams
        for role in (1, 2):
            for column, name in columns[0].items():
                yield Selected(
                    name=f"{stream}.{name}{role}", stream=0, column=column, earlier=role == 2
                )
        return
    for place, (stream, names) in enumerate(zip(query.streams, columns, strict=True)):
        for column, name in names.items():
            yield Selected(name=f"{stream}.{name}", stream=place, column=column)


def _one(query: JoinQuery, columns: Sequence[Mapping[str, str]], item: str) -> Selected:
    name, dot, spelt = item.partition(".")  # a column's name in quotes may have dots, too
    if not dot or re.fullmatch('"[^"]+"', item):
        name, dot, spelt = "", "", item
    name, spelt = name.strip('"'), spelt.strip('"')
    if dot and name not in query.streams:
        raise QueryError(
            f"SELECT {item}: there is no stream {name!r} in FROM, only {', '.join(query.streams)}"
        )
    places = [query.streams.index(name)] if dot else list(range(len(query.streams)))
    base, suffix = spelt[:-1], spelt[-1:]
    has_suffix = query.is_self_join and suffix in ("1", "2")
    if has_suffix and base in columns[0].values():
        column = _find(columns[0], base)
        if column is not None and column != "id":  # a position is no field of a predicate
            return Selected(name=item, stream=0, column=column, earlier=suffix == "2")
    for place in places:
        if (column := _find(columns[place], spelt)) is not None:
            same = [query.streams[at] for at in places if _find(columns[at], spelt) is not None]
            if len(same) > 1:
                raise QueryError(
                    f"SELECT {item}: {', '.join(same)} have such a column each; name one, as in "
                    f"{same[0]}.{item}"
                )
            return Selected(name=item, stream=place, column=column)
        if has_suffix and (column := _find(columns[place], base)) is not None:
            return Selected(name=item, stream=place, column=column, earlier=suffix == "2")
    known = dict.fromkeys(name for place in places for name in columns[place].values())
    raise QueryError(f"SELECT {item}: there is no such column; {suggest(spelt, known)}")


def _find(columns: Mapping[str, str], spelt: str) -> str | None:
    """Return the column of that name, or that is called so in a prepared stream."""
    named = {name: column for column, name in columns.items()}
    if spelt in named or spelt in columns:
        return named.get(spelt, spelt)
    same = [column for name, column in named.items() if name.lower() == spelt.lower()]
    return same[0] if len(same) == 1 else None
