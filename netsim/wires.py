"""What carries messages: a channel between every two wired actors, and the ports of sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from zlib import crc32

import networkx as nx
import numpy as np

from actors.protocol import Wiring
from netsim.network import NetworkError, link_between
from netsim.parts import Clock, Letter, Moment, Node


class Channel:
    """From one actor to another: never reorders. Within one site it takes no time."""

    __slots__ = ("bandwidth_bps", "draw_ns", "last_first_bit_ns")

    def __init__(self, bandwidth_bps: int = 0, draw_ns: Callable[[], int] | None = None) -> None:
        self.bandwidth_bps = bandwidth_bps
        self.draw_ns = draw_ns
        self.last_first_bit_ns = 0


class Wires:
    """Carries messages from their senders' ports to their receivers' (see `netsim.network`).

    Parameters
    ----------
    clock
        Virtual time.
    nodes, wiring, placement, network, seed
        As the kernel's.
    arrive
        Called when a message's last bit has arrived.
    """

    def __init__(
        self,
        clock: Clock,
        nodes: Mapping[str, Node],
        wiring: Wiring,
        placement: Mapping[str, str],
        network: nx.Graph,
        seed: int,
        arrive: Callable[[Moment], None],
    ) -> None:
        self._at = clock.at
        self._arrive = arrive
        pairs = dict.fromkeys(
            (sender, receiver)
            for sender, ports in wiring.items()
            for receivers in ports.values()
            for receiver in receivers
        )
        self._channels: dict[tuple[int, int], Channel] = {}
        for sender, receiver in pairs:
            if sender == receiver:
                raise NetworkError(f"{sender} is wired to itself: use a timer")
            link = link_between(network, placement[sender], placement[receiver])
            channel = Channel()
            if link is not None:
                rng = np.random.default_rng([seed, crc32(f"{sender}>{receiver}".encode())])
                channel = Channel(link.bandwidth_bps, link.latency.sampler(rng))
            self._channels[nodes[sender].rank, nodes[receiver].rank] = channel

    def transmit(self, letter: Letter, now: int) -> None:
        """Send *letter* off, from *now* on, as soon as its sender's port is free."""
        channel = self._channels[letter.sender.rank, letter.receiver.rank]
        draw_ns = channel.draw_ns
        if draw_ns is None:
            letter.left_ns = now
            self._at(now, self._arrive, letter)
            return
        port = letter.sender.site
        letter.tx_ns = tx_ns = letter.nbytes * 8_000_000_000 // channel.bandwidth_bps
        left_ns = port.egress_free_ns
        if left_ns < now:
            left_ns = now
        letter.left_ns = left_ns
        port.egress_free_ns = left_ns + tx_ns
        first_bit_ns = left_ns + draw_ns()
        if first_bit_ns < channel.last_first_bit_ns:
            first_bit_ns = channel.last_first_bit_ns
        channel.last_first_bit_ns = first_bit_ns
        self._at(first_bit_ns, self._reach, letter)

    def _reach(self, moment: Moment) -> None:
        """Receive the first bit at the receiver's port; the message arrives with the last one."""
        letter = moment.letter
        site = letter.receiver.site
        free_ns = site.ingress_free_ns
        now = moment.at_ns
        in_ns = (free_ns if free_ns > now else now) + letter.tx_ns
        site.ingress_free_ns = in_ns
        self._at(in_ns, self._arrive, letter)
