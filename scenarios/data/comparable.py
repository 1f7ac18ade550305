"""Which fields of a query may be text, and whether the codes of prepared streams go together.

Text is stored as codes that are equal exactly where the texts are
(`spark_bridge.pipeline.dictionaries`), so it can be compared with ``=`` and ``!=``, with whatever
shares its dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence

from joins.queries.field import Field
from joins.queries.query import JoinQuery, Predicate
from scenarios.configuration.configs import ConfigError
from spark_bridge.prepared import PreparedStream


def dictionary_names(query: JoinQuery) -> tuple[dict[str, str], ...]:
    """Return for each stream its join fields that may be text: to the name of their dictionary.

    Fields that are compared with each other, directly or by way of others, share one, which is
    named after the first of them. Where one of them is compared otherwise than with ``=`` and
    ``!=``, none of them may be text.
    """
    groups: list[set[tuple[int, str]]] = []
    ordered: set[tuple[int, str]] = set()
    for predicate in query.predicates:
        merged = {(side.stream, side.name) for side in (predicate.left, predicate.right)}
        if not _is_equality(predicate):
            ordered |= merged
        merged = merged.union(*(group for group in groups if group & merged))
        groups = [group for group in groups if not group & merged] + [merged]
    names: tuple[dict[str, str], ...] = tuple({} for _ in query.streams)
    for group in groups:
        if group & ordered:
            continue
        stream, first = min(group)
        for at, field in sorted(group):
            names[at][field] = f"{query.streams[stream]}.{first}"
    return names


def check_codes(query: JoinQuery, streams: Sequence[PreparedStream]) -> None:
    """Raise :exc:`ConfigError` naming a comparison that the codes of *streams* cannot answer."""
    for predicate in query.predicates:
        left, right = (_codes(side, streams) for side in (predicate.left, predicate.right))
        if left is None and right is None:
            continue
        text, other = predicate.left, predicate.right
        if left is None:
            text, other = other, text
        if not _is_equality(predicate):
            raise ConfigError(f"{predicate}: {text.text} is text, which = and != alone can compare")
        if None in (left, right):
            raise ConfigError(f"{predicate}: {text.text} is text, and {other.text} is a number")
        if left != right:
            raise ConfigError(
                f"{predicate}: both are text, but were prepared apart, each with a dictionary of "
                "its own, so that their codes cannot be compared. Give the raw files of all "
                "streams: they are then prepared together"
            )


def _is_equality(predicate: Predicate) -> bool:
    return predicate.epsilon is None and predicate.operator in ("=", "!=")


def _codes(side: Field, streams: Sequence[PreparedStream]) -> str | None:
    return streams[side.stream].codes.get(side.name)
