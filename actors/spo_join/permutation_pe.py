"""SPO-Join's permutation PEs: they relate the orders of a stream's fields (Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.protocol import Actor, Context, Message
from actors.spo_join.predicate_pe import SortedField
from actors.spo_join.router import UpTo
from joins.indexes.immutable.order_arrays import permutation
from joins.work import Step


@dataclass(frozen=True, slots=True)
class Permutations(UpTo):
    """One stream's permutation arrays of an epoch (permutation PE to PO-Join PE)."""

    epoch: int
    stream: int
    """What they belong to."""
    first: int
    """Position of the epoch's first tuple in its stream."""
    last: int
    """Arrival number of the epoch's last tuple."""
    lead_ids: np.ndarray
    """int64, the tuples in the order of the first predicate's field."""
    arrays: tuple[np.ndarray, ...]
    """Per further predicate, for each place in its field's order the place in the lead's."""

    bytes_of = ("first", "last", "lead_ids", "arrays")
    rows_of = ("lead_ids",)


@dataclass(frozen=True, slots=True)
class MergedCount(UpTo):
    """How many tuples of one stream were merged into another PO-Join PE's segments (Figure 6 A).

    *last* is the arrival number of the epoch's last tuple.
    """

    stream: int
    tuples: int
    last: int


class PermutationPE(Actor):
    """Gathers one stream's sorted fields of an epoch and relates their orders.

    Ports: ``po_join`` (by epoch, round robin); with *announces* also ``window``, on which it sends
    all other PO-Join PEs the number of tuples that it sent to that one (Figure 6 A).
    """

    state = ("_gathered",)

    def __init__(self, *, predicates: int, announces: bool = False) -> None:
        self._predicates = predicates
        self._announces = announces
        self._gathered: dict[tuple[int, int], dict[int, np.ndarray]] = {}

    def receive(self, message: Message, context: Context) -> None:
        """Add one sorted field; the last one of an epoch and stream completes it."""
        latest: SortedField = message.payload
        key = (latest.epoch, latest.stream)
        fields = self._gathered.setdefault(key, {})
        fields[latest.predicate] = latest.ids
        if len(fields) < self._predicates:
            return
        del self._gathered[key]
        lead = fields[0]
        arrays = []
        for predicate in range(1, self._predicates):
            array, work = permutation(lead, fields[predicate], first=latest.first)
            context.charge(work, Step("order_arrays.permutation", len(lead), len(lead)))
            arrays.append(array)
        pes = len(context.peers("po_join"))
        home = latest.epoch % pes
        permutations = Permutations(
            latest.epoch, latest.stream, latest.first, latest.last, lead, tuple(arrays)
        )
        context.send("po_join", permutations, to=home)
        if self._announces:
            for pe in range(pes):
                if pe != home:
                    context.send(
                        "window", MergedCount(latest.stream, len(lead), latest.last), to=pe
                    )
