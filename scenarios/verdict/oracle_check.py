"""What came out against the oracle: sums of every tuple first, pairs only where they differ.

Of each probing tuple the oracle knows how many pairs it has, and their fingerprint. Compared with
that are the sums that the run reported and, where it listed its pairs, the sums of the list as it
is on disk. A row of a tuple that does not exist is read too: what it claims is too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from actors.disorder import Disorder, Recorded, open_feed
from actors.feed import StreamData
from actors.result_files import id_columns, pairs_path, summary_path
from joins.batch import Batch
from joins.matches import Matches
from joins.queries.query import JoinQuery
from scenarios.results import Histogram, PairReader, Summaries
from scenarios.verdict.expectation import CHUNK_ROWS, Expectation, expected_sums
from scenarios.verdict.listed_pairs import ListedPairs, StrayPair
from scenarios.verdict.verdict import PairCounts


@dataclass(kw_only=True)
class Comparison(PairCounts):
    """How a run's pairs differ from the expected ones.

    Attributes
    ----------
    stray_rows
        Rows, of reports and of the list, that belong to no probing tuple.
    listed
        Whether the run listed its pairs.
    answered_late
        Tuples that were dropped as late, and answered.
    examples
        The first differing pairs: kind, probing stream, probe id, the matches' ids, and the probing
        tuple's arrival number, -1 if there is no such tuple.
    latencies
        Of every tuple, in nanoseconds.
    """

    stray_rows: int = 0
    listed: bool = False
    answered_late: int = 0
    examples: list[tuple[str, int, int, tuple[int, ...], int]] = field(default_factory=list)
    latencies: Histogram = field(default_factory=Histogram)


def compare(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    directory: Path,
    pairs_directory: Callable[[], Path],
    *,
    listed: bool,
    late: tuple[np.ndarray, ...] = (),
    disorder: Disorder | Recorded | None = None,
    examples: int,
    again: bool = False,
    ahead: Expectation | None = None,
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
    listed
        Whether the run listed its pairs, in *directory* too.
    late
        Per stream the tuples that the run dropped as late; no pair of theirs is expected.
    disorder
        How the streams arrived.
    examples
        How many differing pairs to remember.
    again
        Whether tuples may come again, after a crash: one that is late then may have been joined
        before, so its pairs are neither expected nor spurious.
    ahead
        What the oracle has worked out already, of use where no tuple was late.
    """
    comparison = Comparison(listed=listed)
    late = late if query.interval or disorder else ()
    if ahead is None or any(map(len, late)):
        sums = expected_sums(query, files, late)
    else:
        sums = ahead.sums()
    differing, strays = _compare_sums(query, files, directory, late, comparison, examples, sums)
    comparison.differing_tuples = sum(len(ids) for ids in differing)
    if comparison.differing_tuples:
        pairs = _compare_pairs(
            query, files, pairs_directory(), late, differing, comparison, examples, again=again
        )
        comparison.examples = _with_arrival_numbers(pairs, files, disorder)
    comparison.wrong += comparison.invented
    comparison.examples += [
        ("wrong", stray.stream, stray.probe_id, stray.match_ids, -1)
        for stray in strays[: examples - len(comparison.examples)]
    ]
    return comparison


def _compare_sums(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    directory: Path,
    late: tuple[np.ndarray, ...],
    comparison: Comparison,
    examples: int,
    sums: Iterable[Matches],
) -> tuple[list[np.ndarray], list[StrayPair]]:
    """Return per stream the tuples whose sums are not as expected, and pairs of no tuple at all."""
    probing = [file.tuples for file in files]
    if query.interval:
        probing[1 - query.reach.base] = 0
    readers = [
        Summaries(summary_path(directory, stream), tuples) for stream, tuples in enumerate(probing)
    ]
    listed = None
    if comparison.listed:
        listed = ListedPairs(pairs_path(directory), query.streams, probing, examples=examples)
    reported = 0
    differing: list[list[np.ndarray]] = [[] for _ in files]
    for expected in sums:
        if not len(expected):
            continue
        stream, stop = expected.stream, int(expected.probe_id[-1]) + 1
        found = readers[stream].take(stop)
        count, fingerprint = found.pairs, found.fingerprint
        comparison.expected += expected.total
        reported += int(count.sum())
        comparison.latencies.add(found.latest[found.latest >= 0])
        if listed:
            count, fingerprint = listed.take(stream, stop)
            unlike = (found.pairs != count) | (found.fingerprint != fingerprint)
            comparison.inconsistent += int(unlike.sum())
        if late and len(late[stream]):
            answered = expected.probe_id[count > 0]
            comparison.answered_late += int(np.isin(answered, late[stream]).sum())
        unlike = (count != expected.count) | (fingerprint != expected.fingerprint)
        differing[stream].append(expected.probe_id[unlike])
    for reader in readers:
        reader.finish()
        comparison.stray_rows += reader.sums.stray_rows
        comparison.invented += 0 if listed else reader.sums.stray_pairs
        reported += reader.sums.stray_pairs
    comparison.produced = reported
    if listed:
        listed.finish()
        comparison.produced = listed.rows
        comparison.invented = listed.stray_rows
        comparison.stray_rows += listed.stray_rows
    ids = [np.concatenate(ids) if ids else np.empty(0, np.int64) for ids in differing]
    return ids, listed.strays if listed else []


def _compare_pairs(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    directory: Path,
    late: tuple[np.ndarray, ...],
    differing: list[np.ndarray],
    comparison: Comparison,
    examples: int,
    *,
    again: bool,
) -> list[tuple[str, int, int, tuple[int, ...]]]:
    """Count the pairs that differ by kind, and return the first *examples*."""
    found: list[tuple[str, int, int, tuple[int, ...]]] = []
    names = query.streams
    readers = [
        PairReader(pairs_path(directory), id_columns(names, stream), stream=stream)
        for stream in range(len(files))
    ]
    for expected, allowed in _expected_and_allowed(query, files, late, again=again):
        if not len(expected):
            continue
        stream = expected.stream
        produced = readers[stream].take(int(expected.probe_id[-1]) + 1)
        suspects = np.intersect1d(differing[stream], expected.probe_id)
        if not len(suspects):
            continue
        want = _matches_of(expected, suspects)
        may = want if allowed is expected else _matches_of(allowed, suspects)
        have = _pairs_of(*produced, suspects=suspects)
        have, times = np.unique(have, axis=0, return_counts=True)
        kinds = {
            "missing": _without(want, have),
            "duplicate": np.repeat(have, times - 1, axis=0),
        }
        spurious = _without(have, may)
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
    disorder: Disorder | Recorded | None,
) -> list[tuple[str, int, int, tuple[int, ...], int]]:
    """Return *pairs*, each with the arrival number of its probing tuple."""
    wanted = {(stream, probe_id) for _, stream, probe_id, _ in pairs}
    numbers: dict[tuple[int, int], int] = {}
    feed = open_feed(files, disorder)
    while (chunk := feed.take(CHUNK_ROWS)) is not None:
        for stream, probe_id in wanted - numbers.keys():
            place = np.flatnonzero(chunk.parts[stream].id == probe_id)
            if len(place):
                numbers[stream, probe_id] = int(chunk.seq[stream][place[0]])
        if len(numbers) == len(wanted):
            break
    return [(*pair, numbers[pair[1], pair[2]]) for pair in pairs]


def _expected_and_allowed(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    late: tuple[np.ndarray, ...],
    *,
    again: bool,
) -> Iterator[tuple[Matches, Matches]]:
    """Yield the matches that a run must have, and those that it may have, of the same tuples."""
    expected = expected_sums(query, files, late, enumerate_ids=True)
    if again and any(map(len, late)):
        return zip(expected, expected_sums(query, files, enumerate_ids=True), strict=True)
    return ((matches, matches) for matches in expected)


def _matches_of(matches: Matches, suspects: np.ndarray) -> np.ndarray:
    """Return the results of *suspects* among *matches* as rows (probe id, match ids)."""
    probe_id, match_id = matches.pairs()
    return _pairs_of(probe_id, *np.atleast_2d(match_id.T), suspects=suspects)


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
    """Return for each result whether it satisfies the query's predicates, window aside.

    One with the id of a tuple that does not exist does not.
    """
    others = [other for other in range(len(files)) if other != stream] or [stream]
    tuples_of = np.array([files[place].tuples for place in (stream, *others)])
    holds: np.ndarray = np.all((pairs >= 0) & (pairs < tuples_of), axis=1)
    if not holds.all():
        holds[holds] = _holds(query, files, stream, pairs[holds])
        return holds
    if not len(pairs):
        return holds
    tuples = [(stream, _fetch(files[stream], pairs[:, 0]))]
    tuples += [
        (other, _fetch(files[other], ids)) for other, ids in zip(others, pairs.T[1:], strict=True)
    ]
    schemas = [file.schema for file in files]
    for (probing, probes), (stored, matches) in combinations(tuples, 2):
        for condition in query.conditions_between(probing, stored, schemas):
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
