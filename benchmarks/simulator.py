"""Messages per second of the kernel, with actors that do nothing, inline, trace written.

In the clock: the whole simulation, its trace written; processor time, as the kernel and inline
actors are one thread.

One source, one relay, four workers, one sink over a rack network: nine messages per source message.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from actors.hosting.inline import InlineHost
from actors.protocol import NO_SPAN, Actor, ActorSpec, Context, Message, Payload
from benchmarks.measure import Result, report
from netsim.cost import load_profile
from netsim.kernel import Kernel
from netsim.network import PRESETS, full_mesh
from netsim.trace import Trace, trace_names

_SOURCE_MESSAGES = 20_000
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Nothing(Payload):
    """A message about nothing."""

    nbytes: int = 100
    rows: int = 1
    span: tuple[int, int] = NO_SPAN


class _Source(Actor):
    state = ("left",)

    def __init__(self) -> None:
        self.left = _SOURCE_MESSAGES

    def receive(self, message: Message, context: Context) -> None:
        if self.left:
            self.left -= 1
            context.send("out", Nothing())
            context.set_timer(context.now, "next")


class Relay(Actor):
    """Sends on what it receives."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        """Send it on."""
        context.send("out", message.payload)


class End(Relay):
    """Receives, and does nothing."""

    def receive(self, message: Message, context: Context) -> None:
        """Do nothing."""


class Once(_Source):
    """Sends one message to each of its receivers."""

    def receive(self, message: Message, context: Context) -> None:
        """Send a message."""
        context.send("out", Nothing())


def measure() -> list[Result]:
    """Return messages per second of processor time, the median of several runs."""
    workers = tuple(f"worker.{i}" for i in range(4))
    wiring: dict[str, dict[str, tuple[str, ...]]] = {
        "source": {"out": ("relay",)},
        "relay": {"out": workers},
        **{name: {"out": ("sink",)} for name in workers},
        "sink": {},
    }
    specs = {name: ActorSpec(actor=Relay) for name in wiring}
    specs |= {"source": ActorSpec(actor=_Source), "sink": ActorSpec(actor=End)}
    seconds, messages = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_REPEATS):
            with Trace(trace_names(wiring), Path(folder) / "trace.parquet") as trace:
                kernel = Kernel(
                    wiring=wiring,
                    placement={name: name for name in wiring},
                    network=full_mesh(wiring, PRESETS["rack"]),
                    profile=load_profile(),
                    host=InlineHost(specs, wiring, 1),
                    seed=1,
                    trace=trace,
                    collect=lambda emitted: None,
                )
                start = time.process_time()
                messages = kernel.run().messages
                seconds.append(time.process_time() - start)
    return [Result.rate("messages simulated", messages, seconds, unit="messages/s", target=200_000)]


if __name__ == "__main__":
    report("simulator", measure())
