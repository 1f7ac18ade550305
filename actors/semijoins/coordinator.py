"""The coordinator of adaptive re-planning: gathers what sites saw, and decides for all of them."""

from __future__ import annotations

from actors.protocol import FEEDBACK, Actor, Context, Message
from actors.semijoins.replanning import LEAD, Decision, Observed, PlanBook
from joins.state import State, plain, revive


class Coordinator(Actor):
    """Sends all sites the plan of an epoch when all have told of the epoch `LEAD` before it.

    Choosing a plan is taken to cost no time: it is done beside the join, once an epoch.

    Ports: ``feedback`` to all sites.

    Parameters
    ----------
    book, plan
        The plans, and the first one.
    streams
        Number of streams.
    """

    def __init__(self, *, book: PlanBook, plan: str, streams: int) -> None:
        self._book = book
        self._plan = plan
        self._streams = streams
        self._seen: list[Observed] = []

    def receive(self, message: Message, context: Context) -> None:
        """Take what a site saw; decide when it is the last one's."""
        observed: Observed = message.payload
        self._seen.append(observed)
        seen = [other for other in self._seen if other.epoch == observed.epoch]
        if len(seen) < self._streams:
            return
        self._seen = [other for other in self._seen if other.epoch != observed.epoch]
        seen.sort(key=lambda one: one.stream)
        self._plan = self._book.better(self._plan, seen)
        context.send(FEEDBACK, Decision(epoch=observed.epoch + LEAD, plan=self._plan))

    def snapshot(self) -> State:
        """Return the plan decided last, and what waits for other sites' word."""
        return plain({"plan": self._plan, "seen": self._seen})

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        state = revive(state)
        self._plan, self._seen = state["plan"], state["seen"]
