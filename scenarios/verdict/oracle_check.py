"""What came out against the oracle: counts and fingerprints first, pairs only where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from actors.disorder import Disorder, open_feed
from actors.feed import StreamData
from joins import oracle
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.queries.query import JoinQuery
from scenarios.results import (
    Histogram,
    RangeReader,
    id_columns,
    pairs_path,
    read_summary,
    summary_path,
)

_CHUNK_ROWS = 8_192


@dataclass(kw_only=True)
class Comparison:
    """How a run's pairs differ from the expected ones.

    Attributes
    ----------
    expected, produced
        Numbers of pairs.
    missing, duplicate, expired, wrong
        Numbers of pairs that differ, by kind.
    differing_tuples
        Probing tuples with a pair that differs.
    examples
        The first differing pairs: kind, probing stream, probe id, the matches' ids, and the probing
        tuple's arrival number.
    latencies
        Of every tuple, in nanoseconds.
    """

    expected: int = 0
    produced: int = 0
    missing: int = 0
    duplicate: int = 0
    expired: int = 0
    wrong: int = 0
    differing_tuples: int = 0
    examples: list[tuple[str, int, int, tuple[int, ...], int]] = field(default_factory=list)
    latencies: Histogram = field(default_factory=Histogram)


def compare(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    directory: Path,
    pairs_directory: Callable[[], Path],
    *,
    late: tuple[np.ndarray, ...] = (),
    disorder: Disorder | None = None,
    examples: int,
) -> Comparison:
    """Compare the results in *directory* with the oracle's.

    Parameters
    ----------
    query, files
        What was run, over which streams.
    directory
        Where the run's per-probe counts are.
    pairs_directory
        Called only when something differs: returns where the same run's pairs are, replaying it if
        they were not kept.
    late
        Per stream the tuples that the run dropped as late; no pair of theirs is expected.
    disorder
        How the streams arrived.
    examples
        How many differing pairs to remember.
    """
    comparison = Comparison()
    late = late if query.interval or disorder else ()
    differing = _compare_sums(query, files, directory, late, comparison)
    comparison.differing_tuples = sum(len(ids) for ids in differing)
    if comparison.differing_tuples:
        pairs = _compare_pairs(
            query, files, pairs_directory(), late, differing, comparison, examples
        )
        comparison.examples = _with_arrival_numbers(pairs, files, disorder)
    return comparison


def _chunks(files: tuple[StreamData, ...], disorder: Disorder | None = None) -> Iterator[Arrivals]:
    feed = open_feed(files, disorder)
    while (arrivals := feed.take(_CHUNK_ROWS)) is not None:
        yield arrivals


def _schemas(files: tuple[StreamData, ...]) -> tuple[Schema, ...]:
    return tuple(file.schema for file in files)


def _compare_sums(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    directory: Path,
    late: tuple[np.ndarray, ...],
    comparison: Comparison,
) -> list[np.ndarray]:
    """Return per probing stream the tuples whose count or fingerprint is not as expected."""
    readers = [
        RangeReader(
            summary_path(directory, stream), ["probe_id", "count", "fingerprint", "latency_ns"]
        )
        for stream in range(len(files))
    ]
    differing: list[list[np.ndarray]] = [[] for _ in files]
    for expected in oracle.expected(query, _schemas(files), _chunks(files), late=late):
        if not len(expected):
            continue
        first = int(expected.probe_id[0])
        found = read_summary(readers[expected.stream], first, first + len(expected))
        comparison.expected += expected.total
        comparison.produced += int(found.count.sum())
        comparison.latencies.add(found.latency_ns[found.latency_ns >= 0])
        unlike = (found.count != expected.count) | (found.fingerprint != expected.fingerprint)
        differing[expected.stream].append(expected.probe_id[unlike])
    return [np.concatenate(ids) if ids else np.empty(0, np.int64) for ids in differing]


def _compare_pairs(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    directory: Path,
    late: tuple[np.ndarray, ...],
    differing: list[np.ndarray],
    comparison: Comparison,
    examples: int,
) -> list[tuple[str, int, int, tuple[int, ...]]]:
    """Count the pairs that differ by kind, and return the first *examples*."""
    found: list[tuple[str, int, int, tuple[int, ...]]] = []
    names = query.streams
    readers = [
        RangeReader(pairs_path(directory), id_columns(names, stream), stream=stream)
        for stream in range(len(files))
    ]
    for expected in oracle.expected(
        query, _schemas(files), _chunks(files), late=late, enumerate_ids=True
    ):
        if not len(expected):
            continue
        stream = expected.stream
        produced = readers[stream].take(int(expected.probe_id[-1]) + 1)
        suspects = np.intersect1d(differing[stream], expected.probe_id)
        if not len(suspects):
            continue
        probe_id, match_id = expected.pairs()
        want = _pairs_of(probe_id, *np.atleast_2d(match_id.T), suspects=suspects)
        have = _pairs_of(*(column.to_numpy() for column in produced.columns), suspects=suspects)
        have, times = np.unique(have, axis=0, return_counts=True)
        kinds = {
            "missing": _without(want, have),
            "duplicate": np.repeat(have, times - 1, axis=0),
        }
        spurious = _without(have, want)
        holds = _holds(query, files, stream, spurious)
        kinds["expired"], kinds["wrong"] = spurious[holds], spurious[~holds]
        for kind, pairs in kinds.items():
            setattr(comparison, kind, getattr(comparison, kind) + len(pairs))
            for newest, *matches in pairs[: examples - len(found)].tolist():
                found.append((kind, stream, newest, tuple(matches)))
    return found


def _with_arrival_numbers(
    pairs: list[tuple[str, int, int, tuple[int, ...]]],
    files: tuple[StreamData, ...],
    disorder: Disorder | None,
) -> list[tuple[str, int, int, tuple[int, ...], int]]:
    """Return *pairs*, each with the arrival number of its probing tuple."""
    wanted = {(stream, probe_id) for _, stream, probe_id, _ in pairs}
    numbers: dict[tuple[int, int], int] = {}
    for chunk in _chunks(files, disorder):
        for stream, probe_id in wanted - numbers.keys():
            place = np.flatnonzero(chunk.parts[stream].id == probe_id)
            if len(place):
                numbers[stream, probe_id] = int(chunk.seq[stream][place[0]])
        if len(numbers) == len(wanted):
            break
    return [(*pair, numbers[pair[1], pair[2]]) for pair in pairs]


def _pairs_of(*ids: np.ndarray, suspects: np.ndarray) -> np.ndarray:
    """Return the results of *suspects* as rows (probe id, match ids)."""
    mine = np.isin(ids[0], suspects)
    return np.stack([column[mine] for column in ids], axis=1)


def _without(pairs: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the rows of *pairs* that are not rows of *others*."""
    as_one = np.dtype([(f"id{place}", np.int64) for place in range(pairs.shape[1])])
    mine = np.ascontiguousarray(pairs).view(as_one).ravel()
    theirs = np.ascontiguousarray(others).view(as_one).ravel()
    return pairs[~np.isin(mine, theirs)] if len(theirs) else pairs


def _holds(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    stream: int,
    pairs: np.ndarray,
) -> np.ndarray:
    """Return for each result whether it satisfies the query's predicates, window aside."""
    holds = np.ones(len(pairs), bool)
    if not len(pairs):
        return holds
    others = [other for other in range(len(files)) if other != stream] or [stream]
    tuples = [(stream, _fetch(files[stream], pairs[:, 0]))]
    tuples += [
        (other, _fetch(files[other], ids)) for other, ids in zip(others, pairs.T[1:], strict=True)
    ]
    for (probing, probes), (stored, matches) in combinations(tuples, 2):
        for condition in query.conditions_between(probing, stored, _schemas(files)):
            holds &= condition.holds(
                probes.fields[condition.probe_field], matches.fields[condition.stored_field]
            )
    return holds


def _fetch(file: StreamData, ids: np.ndarray) -> Batch:
    """Return the tuples with these ids, in this order."""
    wanted, places = np.unique(ids, return_inverse=True)
    found = []
    for batch in file.batches(int(wanted[0])):
        mine = wanted[(wanted >= batch.id[0]) & (wanted <= batch.id[-1])]
        found.append(batch.take(mine - int(batch.id[0])))
        if batch.id[-1] >= wanted[-1]:
            break
    return Batch.concat(found).take(places.ravel())
