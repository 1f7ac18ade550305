"""One of the sources of one stream of an interval join."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from actors.feed import StreamFile
from actors.interval_join.payloads import BEGINNING, END, Rows, Share
from actors.source import Feeding, Source
from joins.arrivals import Arrivals
from joins.batch import Schema


class StreamSource(Source):
    """Feeds its share of one stream in, in step with the other sources.

    Sources take the same runs of arrivals, each its own tuples of a run: so their clocks, which
    are event time, agree, and a source that has nothing to send says how far time is
    (a punctuation).

    Parameters
    ----------
    files, feeding
        All streams, and how they are fed in.
    stream
        Position in the query of the stream to send.
    replica, replicas
        It sends the tuples whose position leaves *replica* when divided by *replicas*.
    """

    state = ("_latest",)

    def __init__(
        self,
        *,
        files: tuple[StreamFile, ...],
        feeding: Feeding,
        stream: int,
        replica: int,
        replicas: int,
    ) -> None:
        super().__init__(
            files=tuple(
                file if place == stream else replace(file, schema=_times_alone(file.schema))
                for place, file in enumerate(files)
            ),
            feeding=feeding,
        )
        self._stream, self._replica, self._replicas = stream, replica, replicas
        self._latest: int | None = None

    def _payload(self, arrivals: Arrivals, now: int, *, last: bool) -> Share:
        batch, seq = arrivals.parts[self._stream], arrivals.seq[self._stream]
        if self._replicas > 1:
            mine = np.flatnonzero(batch.id % self._replicas == self._replica)
            batch, seq = batch.take(mine), seq[mine]
        watermark = END if last else self._watermark(arrivals)
        return Share(Rows(batch, self._born_ns(seq, now), seq), watermark, last)

    def _watermark(self, arrivals: Arrivals) -> int:
        times = [int(part.ts.max()) for part in arrivals.parts if len(part)]
        self._latest = max(times if self._latest is None else [*times, self._latest])
        if not self._feeding.watermarks:
            return BEGINNING
        return max(BEGINNING, self._latest - self._feeding.lag_ns)


def _times_alone(schema: Schema) -> Schema:
    return replace(schema, fields={})
