"""The oracle's sums, worked out by a thread of their own while a run goes on.

What is expected depends on the streams alone, as long as no tuple was dropped as late: so the
oracle need not wait for the run, and on a second core takes none of its time. The sums wait in a
file: memory does not grow with the streams.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from actors.feed import StreamData, open_feed
from joins import oracle
from joins.arrivals import Arrivals
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.threads import usable_cores

WORTH_A_THREAD = 32_768
"""Tuples of all streams from which on it is worth to work beside the run."""
CHUNK_ROWS = 65_536
"""Arrivals that the oracle takes at once."""


def expected_sums(
    query: JoinQuery,
    files: Sequence[StreamData],
    late: Sequence[np.ndarray] = (),
    **options: Any,
) -> Iterator[Matches]:
    """Yield what the oracle expects of *files*; *options* are `joins.oracle.expected`'s."""
    schemas = [file.schema for file in files]
    return oracle.expected(query, schemas, _chunks(files), late=late, **options)


def _chunks(files: Sequence[StreamData]) -> Iterator[Arrivals]:
    feed = open_feed(tuple(files), None)
    while (arrivals := feed.take(CHUNK_ROWS)) is not None:
        yield arrivals


class _Stored(NamedTuple):
    """Sums of consecutive tuples of a stream, at a place in the file."""

    stream: int
    first: int
    rows: int
    at: int


class Expectation:
    """Works out what a run should find, from now on; a context manager that ends the work.

    Only where no tuple is dropped as late: `sums` are those of all tuples.
    """

    def __init__(self, query: JoinQuery, files: Sequence[StreamData]) -> None:
        self._query, self._files = query, files
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._stored: list[_Stored] = []
        self._more = threading.Condition()
        self._ended = self._stopped = self._awaited = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="oracle", daemon=True)
        self._thread.start()

    def __enter__(self) -> Expectation:
        """Return the expectation itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop working."""
        self._stopped = True
        self._thread.join()
        self._file.close()

    def sums(self) -> Iterator[Matches]:
        """Yield counts and fingerprints, as `expected_sums` does; wait for those to come."""
        place, self._awaited = 0, True
        while True:
            with self._more:
                while place == len(self._stored) and not self._ended:
                    self._more.wait()
                if place == len(self._stored):
                    if self._failure is not None:
                        raise self._failure
                    return
                stored = self._stored[place]
                self._file.seek(stored.at)
                data = self._file.read(16 * stored.rows)
            place += 1
            yield Matches(
                stream=stored.stream,
                probe_id=np.arange(stored.first, stored.first + stored.rows),
                count=np.frombuffer(data, np.int64, stored.rows),
                fingerprint=np.frombuffer(data, np.uint64, offset=8 * stored.rows),
            )

    def _threads(self) -> int:
        return usable_cores() if self._awaited else 1  # another core is the run's

    def _work(self) -> None:
        try:
            self._store_all()
        except BaseException as error:  # it is raised where the sums are read
            self._failure = error
        finally:
            with self._more:
                self._ended = True
                self._more.notify()

    def _store_all(self) -> None:
        at = 0
        for expected in expected_sums(self._query, self._files, threads=self._threads):
            if self._stopped:
                return
            if not len(expected):
                continue
            first, rows = int(expected.probe_id[0]), len(expected)
            with self._more:
                self._file.seek(at)
                self._file.write(expected.count.tobytes())
                self._file.write(expected.fingerprint.tobytes())
                self._stored.append(_Stored(expected.stream, first, rows, at))
                self._more.notify()
            at += 16 * rows
