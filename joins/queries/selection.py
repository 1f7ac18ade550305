"""What a query selects: columns of its streams, named as it spells them.

In a self join ``x1`` is of the newer tuple and ``x2`` of the earlier one; without a suffix it is
the newer's. ``*`` stands for all columns of all streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from joins.errors import suggest
from joins.queries.conditions import prepared_name
from joins.queries.query import JoinQuery, QueryError

STAR = "*"


@dataclass(frozen=True, kw_only=True)
class Selected:
    """A column to output.

    Attributes
    ----------
    name
        As the query spells it.
    stream
        Place of its stream in the query.
    column
        Its name in the stream.
    earlier
        Whether it is of the earlier tuple of a self join.
    """

    name: str
    stream: int
    column: str
    earlier: bool = False


def select(query: JoinQuery, columns: Sequence[Sequence[str]]) -> list[Selected]:
    """Return what *query* selects of the *columns* of each of its streams.

    Raise :exc:`QueryError` for a column that no stream has, with the nearest that there is, for one
    that several have, and for an ``id`` that is joined by and could be two columns.
    """
    _check_ids(query, columns)
    chosen: list[Selected] = []
    for item in query.select:
        if item == STAR:
            chosen += _all(query, columns)
        else:
            chosen.append(_one(query, columns, item))
    return list({one.name: one for one in chosen}.values())


def _check_ids(query: JoinQuery, columns: Sequence[Sequence[str]]) -> None:
    """Refuse an ``id`` that is joined by, of a source that has a column ``source_id``, too."""
    for predicate in query.predicates:
        for side in predicate.fields:
            if side.name not in side.text and _moved(side.name) in columns[side.stream]:
                own = side.name.removeprefix("source_")
                raise QueryError(
                    f"{predicate}: stream {query.streams[side.stream]!r} has columns {own!r} and "
                    f"{side.name!r}, and a column {own!r} is called {side.name!r} here, where the "
                    "id is a tuple's position; rename one of them"
                )


def _moved(prepared: str) -> str:
    """Return what a source's ``id`` is called where its `prepared_name` is that of another."""
    return f"{prepared}_"


def _all(query: JoinQuery, columns: Sequence[Sequence[str]]) -> Iterator[Selected]:
    if query.is_self_join:
        (name,) = query.streams
        for role in (1, 2):
            for column in columns[0]:
                yield Selected(
                    name=f"{name}.{column}{role}", stream=0, column=column, earlier=role == 2
                )
        return
    for place, (name, own) in enumerate(zip(query.streams, columns, strict=True)):
        for column in own:
            yield Selected(name=f"{name}.{column}", stream=place, column=column)


def _one(query: JoinQuery, columns: Sequence[Sequence[str]], item: str) -> Selected:
    name, dot, spelt = item.partition(".")  # a column's name in quotes may have dots, too
    if not dot or re.fullmatch('"[^"]+"', item):
        name, dot, spelt = "", "", item
    spelt = spelt.strip('"')
    if dot and name not in query.streams:
        raise QueryError(
            f"SELECT {item}: there is no stream {name!r} in FROM, only {', '.join(query.streams)}"
        )
    places = [query.streams.index(name)] if dot else list(range(len(query.streams)))
    for place in places:
        if (column := _find(columns[place], spelt)) is not None:
            same = [query.streams[at] for at in places if _find(columns[at], spelt) is not None]
            if len(same) > 1:
                raise QueryError(
                    f"SELECT {item}: {', '.join(same)} have such a column each; name one, as in "
                    f"{same[0]}.{item}"
                )
            return Selected(name=item, stream=place, column=column)
        if query.is_self_join and spelt[-1:] in ("1", "2"):
            column = _find(columns[place], spelt[:-1])
            if column is not None:
                return Selected(name=item, stream=place, column=column, earlier=spelt[-1] == "2")
    known = dict.fromkeys(column for place in places for column in columns[place])
    raise QueryError(f"SELECT {item}: there is no such column; {suggest(spelt, known)}")


def _find(columns: Sequence[str], spelt: str) -> str | None:
    prepared = prepared_name(spelt)
    for name in (_moved(prepared), prepared, spelt) if prepared != spelt else (spelt,):
        if name in columns:
            return name
    same = [column for column in columns if column.lower() == spelt.lower()]
    return same[0] if len(same) == 1 else None
