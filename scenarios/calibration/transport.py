"""What it took a process of a live run to pass messages on: all that was not in the actors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_SENDER, _RECEIVER, _NBYTES = 0, 1, 4
"""Columns of a live trace, see `actors.hosting.live.shard`."""


@dataclass(frozen=True, kw_only=True)
class Carried:
    """What one process of a live run passed on.

    Attributes
    ----------
    seconds
        Its processor time outside the actors.
    local
        Messages and timers that stayed in it.
    received, received_bytes
        Messages from other processes, and their bytes.
    sent, sent_bytes
        Messages to other processes, and their bytes.
    """

    seconds: float
    local: int
    received: int
    received_bytes: int
    sent: int
    sent_bytes: int

    @property
    def counts(self) -> np.ndarray:
        """Return what seconds are made of: messages served, what is more of remote ones, bytes."""
        return np.array(
            [
                self.local + self.received,
                self.received,
                self.received_bytes,
                self.sent,
                self.sent_bytes,
            ],
            np.float64,
        )


def carried_by(process: int, seconds: float, trace: np.ndarray, homes: np.ndarray) -> Carried:
    """Return what *process* passed on, which took it *seconds*.

    Parameters
    ----------
    trace
        Messages and timers of the whole run, a row each.
    homes
        Actor, as the trace numbers them, to its process.
    """
    sends, receives = homes[trace[:, _SENDER]] == process, homes[trace[:, _RECEIVER]] == process
    nbytes = trace[:, _NBYTES]
    return Carried(
        seconds=seconds,
        local=int((sends & receives).sum()),
        received=int((receives & ~sends).sum()),
        received_bytes=int(nbytes[receives & ~sends].sum()),
        sent=int((sends & ~receives).sum()),
        sent_bytes=int(nbytes[sends & ~receives].sum()),
    )
