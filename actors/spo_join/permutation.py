"""The permutation PE: relates the orders of a stream's fields (Algorithm 2)."""

from __future__ import annotations

import numpy as np

from actors.protocol import Actor, Context, Message, State
from actors.spo_join.payloads import Permutations, SortedRun
from actors.state import plain
from joins.indexes.permutation import permutation


class PermutationPE(Actor):
    """Gathers one stream's sorted fields of an epoch and relates their orders.

    Port: ``po_join`` (by epoch, round robin).
    """

    def __init__(self, *, predicates: int) -> None:
        self._predicates = predicates
        self._gathered: dict[tuple[int, int], dict[int, np.ndarray]] = {}

    def receive(self, message: Message, context: Context) -> None:
        """Take one sorted field; the last one of an epoch and stream completes it."""
        run: SortedRun = message.payload
        key = (run.epoch, run.stream)
        fields = self._gathered.setdefault(key, {})
        fields[run.predicate] = run.ids
        if len(fields) < self._predicates:
            return
        del self._gathered[key]
        lead = fields[0]
        arrays = []
        for predicate in range(1, self._predicates):
            array, work = permutation(lead, fields[predicate], first=run.first)
            context.charge(work)
            arrays.append(array)
        context.send(
            "po_join",
            Permutations(run.epoch, run.stream, run.first, lead, tuple(arrays)),
            to=run.epoch % len(context.peers("po_join")),
        )

    def snapshot(self) -> State:
        """Return what has been gathered."""
        return {"gathered": plain(list(self._gathered.items()))}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._gathered = {tuple(key): dict(fields) for key, fields in state["gathered"]}
