"""Plans as people write them: the text that a plan prints as.

A linear plan has a join sequence per head, ``A: B SP-D, C SM-S1``, each on its own line or behind a
semicolon. A tree is one order from the bottom up in brackets, with the algorithm from the stream to
the output below and the one back: ``(A, B SP-S/SP-D, C SM-S1/SP-D)``. In place of a stream there
may be another such tree: ``(A, B SP-S/SP-D, (C, D SP-D/SP-S) SM-S1/SP-D)``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.plan import JoinSequence, LinearPlan, Step
from topologies.semijoins.trees.plan import Tree, TreePlan, TwoWayJoin
from topologies.topology import TopologyError

JoinPlan = LinearPlan | TreePlan


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
    words = deque(word for word in re.findall(r"[(),]|[^(),]+", text) if word.strip())
    root = _brackets(words, text, streams)
    if words:
        raise TopologyError(f"plan, {text!r}: nothing may follow the last bracket")
    if isinstance(root, int):
        raise TopologyError(f"plan, {text!r}: a tree joins two streams or more")
    return TreePlan(streams=streams, root=root)


def _brackets(words: deque[str], text: str, streams: tuple[str, ...]) -> Tree:
    """Take a tree from its bracket to the closing one."""
    words.popleft()
    tree, behind = _operand(words, text, streams)
    if behind:
        raise TopologyError(f"plan, {behind!r}: a tree begins with a stream or a tree alone")
    while words and words[0] == ",":
        words.popleft()
        right, behind = _operand(words, text, streams)
        up, slash, down = behind.partition("/")
        if not slash:
            raise TopologyError(f"plan, {behind!r}: write a tree's join as in B SP-S/SP-D")
        tree = TwoWayJoin(left=tree, right=right, up=_algorithm(up), down=_algorithm(down))
    if not words or words.popleft() != ")":
        raise TopologyError(f"plan, {text!r}: the bracket is not closed")
    return tree


def _operand(words: deque[str], text: str, streams: tuple[str, ...]) -> tuple[Tree, str]:
    """Take a stream or a tree, and return it with the algorithms behind it."""
    tree = _brackets(words, text, streams) if words and words[0] == "(" else None
    word = words.popleft().strip() if words and words[0] not in "(,)" else ""
    if tree is not None:
        return tree, word
    name, _, behind = word.partition(" ")
    return _stream(name, streams), behind.strip()


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
