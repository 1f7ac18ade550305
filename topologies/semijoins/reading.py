"""Plans as people write them: the text that a plan prints as.

A linear plan has a join sequence per head, ``A: B SP-D, C SM-S1``, each on its own line or behind a
semicolon. A tree is one order from the bottom up in brackets, with the algorithm from the stream to
the output below and the one back: ``(A, B SP-S/SP-D, C SM-S1/SP-D)``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from joins.one_way_join import OneWayJoin
from topologies.semijoins.plan import JoinPlan, JoinSequence, LinearPlan, Step, TreePlan, TwoWayJoin
from topologies.topology import TopologyError


def read_plan(text: str, streams: Sequence[str]) -> JoinPlan:
    """Return the plan that *text* says for *streams*, names in the order of the query.

    Raise :exc:`TopologyError` naming the word that is wrong, and what is allowed.
    """
    names = tuple(streams)
    text = text.strip()
    if text.startswith("("):
        return _tree(text, names)
    lines = [line.strip() for line in re.split(r"[;\n]", text) if line.strip()]
    sequences = sorted((_sequence(line, names) for line in lines), key=lambda s: s.head)
    return LinearPlan(streams=names, sequences=tuple(sequences))


def _sequence(line: str, streams: tuple[str, ...]) -> JoinSequence:
    head, colon, rest = line.partition(":")
    if not colon:
        raise TopologyError(f"plan, {line!r}: write a sequence as in A: B SP-D, C SM-S1")
    steps = []
    for item in rest.split(","):
        stream, algorithm = _pair(item)
        steps.append(Step(stream=_stream(stream, streams), algorithm=_algorithm(algorithm)))
    return JoinSequence(head=_stream(head, streams), steps=tuple(steps))


def _tree(text: str, streams: tuple[str, ...]) -> TreePlan:
    if not text.endswith(")"):
        raise TopologyError(f"plan, {text!r}: the bracket is not closed")
    first, *rest = text[1:-1].split(",")
    joins = []
    for item in rest:
        stream, algorithms = _pair(item)
        up, slash, down = algorithms.partition("/")
        if not slash:
            raise TopologyError(f"plan, {item.strip()!r}: write a tree's join as in B SP-S/SP-D")
        joins.append(
            TwoWayJoin(stream=_stream(stream, streams), up=_algorithm(up), down=_algorithm(down))
        )
    return TreePlan(streams=streams, first=_stream(first, streams), joins=tuple(joins))


def _pair(item: str) -> tuple[str, str]:
    words = item.rsplit(maxsplit=1)
    if len(words) != 2:
        raise TopologyError(f"plan, {item.strip()!r}: write a stream and its algorithm, B SP-D")
    return words[0], words[1]


def _stream(name: str, streams: tuple[str, ...]) -> int:
    if name.strip() not in streams:
        raise TopologyError(
            f"plan: there is no stream {name.strip()!r}; there are {', '.join(streams)}"
        )
    return streams.index(name.strip())


def _algorithm(name: str) -> OneWayJoin:
    try:
        return OneWayJoin(name.strip().upper())
    except ValueError:
        raise TopologyError(
            f"plan: there is no algorithm {name.strip()!r}; there are {', '.join(OneWayJoin)}"
        ) from None
