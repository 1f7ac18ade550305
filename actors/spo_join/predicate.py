"""The predicate PE: one predicate, over the mutable component (section 3.2)."""

from __future__ import annotations

import numpy as np

from actors.probes import Probes
from actors.protocol import Actor, Context, Message
from actors.spo_join.dealing import DEALINGS
from actors.spo_join.payloads import MergeFlag, Offsets, Partial, Routed, SortedRun
from actors.spo_join.rows import ROWS, Rows
from joins.batch import Schema
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.immutable.order_arrays import offset
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery


class PredicatePE(Actor):
    """Indexes each stream's field of one predicate in a B+-tree, and probes the other's.

    Within a message all tuples are inserted before any is probed, and what a probe finds is cut to
    the window that the router gave it, so a tuple sees its predecessors and nothing else.

    Several replicas may share a predicate: each indexes every tuple, and they take turns in
    probing, by the number of the router's message. Replica 0 sends the arrays of a merge.

    Ports: ``logical`` (see `actors.spo_join.dealing`), ``permutation`` (by epoch and stream),
    ``po_join`` (by epoch, round robin).

    Parameters
    ----------
    query, schemas, predicate
        The join, and the position of this PE's predicate in it.
    replica, replicas
        Which of the PEs that share the predicate this is.
    mutable
        Form of its results: a key of `actors.spo_join.rows.ROWS`.
    partitioning
        How they are dealt out: a key of `actors.spo_join.dealing.DEALINGS`.
    """

    state = ("_dealing", "_trees", "_base", "_stored")

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        predicate: int,
        replica: int = 0,
        replicas: int = 1,
        mutable: str = "bits",
        partitioning: str = "hash",
    ) -> None:
        streams = range(len(query.streams))
        self._predicate = predicate
        self._replica = replica
        self._replicas = replicas
        self._rows = ROWS[mutable]
        self._dealing = DEALINGS[partitioning]()
        self._stored_stream = [query.stored_stream(stream) for stream in streams]
        self._probing: list[Condition] = [
            query.conditions(stream, schemas)[predicate] for stream in streams
        ]
        self._storing: list[Condition] = [self._probing[other] for other in self._stored_stream]
        self._trees = [BPlusTree(condition.dtype) for condition in self._storing]
        self._base = [0] * len(streams)
        self._stored = [0] * len(streams)

    def receive(self, message: Message, context: Context) -> None:
        """Store and probe tuples, or merge at a flag."""
        payload = message.payload
        if isinstance(payload, MergeFlag):
            self._merge(payload, context)
        else:
            self._store(payload, context)
            if payload.number % self._replicas == self._replica:
                self._probe(payload, context)

    def _store(self, routed: Routed, context: Context) -> None:
        for stream, part in enumerate(routed.parts):
            condition = self._storing[stream]
            keys = part.batch.fields[condition.stored_field].astype(condition.dtype, copy=False)
            context.charge(self._trees[stream].insert(keys, part.batch.id))
            self._stored[stream] += len(part)

    def _probe(self, routed: Routed, context: Context) -> None:
        found = [self._find(stream, part, context) for stream, part in enumerate(routed.parts)]
        shares, receivers = self._dealing.deal(
            [part.batch.id for part in routed.parts], len(context.peers("logical")), context.rng
        )
        for share, pe in enumerate(receivers):
            mine = [np.flatnonzero(shared == share) for shared in shares]
            if any(len(rows) for rows in mine):
                parts = tuple(part.take(rows) for part, rows in zip(found, mine, strict=True))
                partial = Partial(routed.number, share, self._predicate, parts, routed.span)
                context.send("logical", partial, to=pe)

    def _find(self, stream: int, part: Probes, context: Context) -> Rows:
        """Return a row for every probe: the stored tuples it matches, inside its window."""
        condition = self._probing[stream]
        stored = self._stored_stream[stream]
        rows, work = self._rows.probe(
            self._trees[stored],
            part,
            condition.bounds(part.batch.fields[condition.probe_field]),
            negated=condition.negated,
            base=self._base[stored],
            stored=self._stored[stored],
        )
        context.charge(work)
        return rows

    def _merge(self, flag: MergeFlag, context: Context) -> None:
        """Send the epoch's sorted ids and keys on and start the next epoch empty.

        The leaves hold each field in order already; what is left to compute here is Algorithm 3.
        """
        if self._replica == 0:
            keys = []
            for stream, tree in enumerate(self._trees):
                sorted_keys, ids, work = tree.scan()
                context.charge(work)
                keys.append(sorted_keys)
                run = SortedRun(
                    flag.epoch, stream, self._predicate, self._base[stream], flag.last, ids
                )
                pes = len(context.peers("permutation"))
                context.send("permutation", run, to=(flag.epoch * len(self._trees) + stream) % pes)
            offsets = None
            if len(keys) == 2:
                offsets, work = offset(keys[0], keys[1])
                context.charge(work)
            context.send(
                "po_join",
                Offsets(flag.epoch, self._predicate, tuple(keys), offsets),
                to=flag.epoch % len(context.peers("po_join")),
            )
        for stream, tree in enumerate(self._trees):
            tree.clear()
            self._base[stream] = flag.ends[stream]
            self._stored[stream] = 0
