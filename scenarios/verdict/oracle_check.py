"""What came out against the oracle: sums of every tuple first, pairs only where they differ.

Of each probing tuple the oracle knows how many pairs it has, and their fingerprint. Compared with
that are the sums that the run reported and, where it listed its pairs, the sums of the list as it
is on disk. A row of a tuple that does not exist is read too: what it claims is too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.feed import Disorder, Recorded, StreamData, open_feed
from actors.result_files import id_columns, pairs_path, summary_path
from joins.batch import Batch
from joins.errors import DataError
from joins.hashing import mix, mix_rows
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.semijoins.value_sample import TupleSample, ValueSample
from joins.sliding_column import values_at
from scenarios.plan import Plan
from scenarios.result_readers import LatencyHistogram, ListedPairs, Summaries
from scenarios.verdict import OFFENDERS_NAMED, Offender, PairCounts, expectation
from scenarios.verdict.latency_check import LatencyCheck
from topologies.topology import Approximation


@dataclass(kw_only=True)
class PairDifferences(PairCounts):
    """How a run's pairs differ from the expected ones.

    Attributes
    ----------
    stray_rows
        Rows, of reports and of the list, that belong to no probing tuple.
    odd_rows
        Rows of reports that no actor can have sent.
    reported, by_sender
        Pairs that reports claim, and their rows by the rank of the actor that sent them.
    listed
        Whether the run listed its pairs.
    answered_late
        Tuples that were dropped as late, and answered.
    offenders
        The first differing pairs of probing tuples that exist, without arrivals.
    strays
        The first listed pairs of no such tuple; with the offenders, `OFFENDERS_NAMED` at most.
    latencies
        Of every tuple, in nanoseconds.
    """

    stray_rows: int = 0
    odd_rows: int = 0
    reported: int = 0
    by_sender: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    listed: bool = False
    answered_late: int = 0
    offenders: list[Offender] = field(default_factory=list)
    strays: list[Offender] = field(default_factory=list)
    latencies: LatencyHistogram = field(default_factory=LatencyHistogram)


class _Differing(NamedTuple):
    """Tuples of a stream whose sums are not as expected, ascending, and the sums they have."""

    ids: np.ndarray
    pairs: np.ndarray
    fingerprint: np.ndarray


def compare_with_oracle(
    plan: Plan,
    directory: Path,
    pairs_directory: Callable[[], Path],
    *,
    late: tuple[np.ndarray, ...],
    again: bool,
    ahead: expectation.Expectation | None,
    approximation: Approximation | None,
    latencies: LatencyCheck,
) -> PairDifferences:
    """Compare the results in *directory* with the oracle's.

    Parameters
    ----------
    plan
        What was run.
    directory
        Where the run's per-probe counts are, and its pairs where it listed them.
    pairs_directory
        Called only when something differs: returns where the same run's pairs are, replaying it if
        they were not kept.
    late
        Per stream the tuples that the run dropped as late; no pair of theirs is expected.
    again
        Whether tuples may come again, after a crash: one that is late then may have been joined
        before, so its pairs are neither expected nor spurious.
    ahead
        What the oracle has worked out already, of use where no tuple was late.
    approximation
        What the run keeps, where it leaves results out on purpose.
    latencies
        Is given those of all tuples.
    """
    differences = PairDifferences(listed=plan.config.pairs)
    late = late if plan.query.interval or plan.feeding.disorder else ()
    if ahead is None or any(map(len, late)):
        sums = expectation.expected_sums(plan.query, plan.files, late)
    else:
        sums = ahead.sums()
    kept = _kept_tuples(approximation.kept, plan.files) if approximation else None
    differing, strays = _compare_sums(plan, directory, late, kept, differences, sums, latencies)
    differences.differing_tuples = sum(len(one.ids) for one in differing)
    if differences.differing_tuples:
        _compare_pairs(plan, pairs_directory(), late, differing, differences, again=again)
    differences.wrong += differences.invented
    differences.strays = [
        _offender("wrong", *stray)
        for stray in strays[: OFFENDERS_NAMED - len(differences.offenders)]
    ]
    return differences


def _kept_tuples(kept: Sequence[TupleSample], files: Sequence[StreamData]) -> list[np.ndarray]:
    """Return per stream which tuples have a value that is kept, bool."""
    masks = []
    for sample, file in zip(kept, files, strict=True):
        parts = [_is_kept(sample.values, batch.fields[sample.field]) for batch in file.batches()]
        masks.append(np.concatenate([np.empty(0, np.bool_), *parts]))
    return masks


def _is_kept(sample: ValueSample, values: np.ndarray) -> np.ndarray:
    """Return which values *sample* keeps, as it is defined and not as operators work it out.

    A value's random number is the hash of its bits, those of a negative one without sign, negated.
    """
    magnitude = np.abs(values.astype(np.float64)).view(np.int64)
    drawn = (mix(np.where(values < 0, -magnitude, magnitude)) >> np.uint64(11)) / 2**53
    chosen = (drawn < sample.share) & ~np.isin(values, sample.never)
    return chosen | np.isin(values, sample.always)


def _compare_sums(
    plan: Plan,
    directory: Path,
    late: tuple[np.ndarray, ...],
    kept: Sequence[np.ndarray] | None,
    differences: PairDifferences,
    sums: Iterable[Matches],
    latencies: LatencyCheck,
) -> tuple[list[_Differing], list[tuple[int, ...]]]:
    """Return per stream the tuples whose sums are not as expected, and pairs of no tuple at all."""
    query = plan.query
    probing = [file.tuples for file in plan.files]
    if query.interval:
        probing[1 - query.reach.base] = 0
    actors = len(plan.graph())
    readers = [
        Summaries(summary_path(directory, stream), tuples, actors)
        for stream, tuples in enumerate(probing)
    ]
    listed = None
    if differences.listed:
        listed = ListedPairs(
            pairs_path(directory), query.streams, probing, strays_max=OFFENDERS_NAMED
        )
    reported = 0
    nothing = _Differing(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint64))
    differing = [[nothing] for _ in probing]
    for expected in _of_all(sums, query, probing):
        stream, stop = expected.stream, int(expected.probe_id[-1]) + 1
        found = readers[stream].take(stop)
        count, fingerprint = found.pairs, found.fingerprint
        differences.expected += expected.total
        reported += int(count.sum())
        differences.latencies.add(found.latest[found.latest >= 0])
        latencies.add_latencies(stream, int(expected.probe_id[0]), found.latest)
        if listed:
            count, fingerprint = listed.take(stream, stop)
            unlike = (found.pairs != count) | (found.fingerprint != fingerprint)
            differences.inconsistent += int(unlike.sum())
        if late and len(late[stream]):
            answered = expected.probe_id[count > 0]
            place = np.searchsorted(late[stream], answered)  # both ascend
            differences.answered_late += int((values_at(late[stream], place, -1) == answered).sum())
        if kept:
            # All tuples of a result have one value: with the probing tuple the result is kept.
            here = kept[stream][expected.probe_id]
            off = (count != expected.count * here) | (fingerprint != expected.fingerprint * here)
            differences.off_sample += int(off.sum())
        unlike = (count != expected.count) | (fingerprint != expected.fingerprint)
        differing[stream].append(
            _Differing(expected.probe_id[unlike], count[unlike], fingerprint[unlike])
        )
    for reader in readers:
        reader.finish()
        differences.stray_rows += reader.sums.stray_rows
        differences.odd_rows += reader.odd_rows
        differences.invented += 0 if listed else reader.sums.stray_pairs
        reported += reader.sums.stray_pairs
    differences.produced = differences.reported = reported
    differences.by_sender = np.sum([reader.by_sender for reader in readers], axis=0)
    if listed:
        listed.finish()
        differences.produced = listed.rows
        differences.invented = listed.stray_rows
        differences.stray_rows += listed.stray_rows
    whole = [_Differing(*map(np.concatenate, zip(*parts, strict=True))) for parts in differing]
    return whole, listed.strays if listed else []


def _of_all(sums: Iterable[Matches], query: JoinQuery, probing: Sequence[int]) -> Iterator[Matches]:
    """Yield *sums*; raise :exc:`DataError` where they are not of all tuples that probe."""
    stops = [0] * len(probing)
    for expected in sums:
        if len(expected):
            stops[expected.stream] = int(expected.probe_id[-1]) + 1
            yield expected
    for name, stop, tuples in zip(query.streams, stops, probing, strict=True):
        if stop < tuples:
            raise DataError(
                f"stream {name!r}: the oracle ended at tuple {stop:,} of {tuples:,}: the answer "
                "cannot be judged"
            )


def _compare_pairs(
    plan: Plan,
    directory: Path,
    late: tuple[np.ndarray, ...],
    differing: list[_Differing],
    differences: PairDifferences,
    *,
    again: bool,
) -> None:
    """Count the pairs that differ by kind, and name the first.

    A run in virtual time that did not list its pairs reported what its replay lists, or the pairs
    say nothing about it. A live run's replay need not be the same.
    """
    replayed = not differences.listed and plan.config.clock == "virtual"
    query, files, offenders = plan.query, plan.files, differences.offenders
    for expected, allowed in _expected_and_allowed(query, files, late, again=again):
        stream = expected.stream
        if not len(expected):
            continue
        # Both ascend, and a chunk is a short stretch of all that differ.
        ends = np.searchsorted(differing[stream].ids, expected.probe_id[[0, -1]] + [0, 1])
        near = [column[slice(*ends)] for column in differing[stream]]
        mine = np.isin(near[0], expected.probe_id)
        suspects, *reported = (column[mine] for column in near)
        if not len(suspects):
            continue
        want = _matches_of(expected, suspects)
        may = want if allowed is expected else _matches_of(allowed, suspects)
        have = _read_pairs(directory, query, stream, suspects)
        if replayed:
            unlike = [a != b for a, b in zip(_sums_of(have, suspects), reported, strict=True)]
            differences.inconsistent += int(np.any(unlike, axis=0).sum())
        _, first, times = np.unique(_row_ranks(have), return_index=True, return_counts=True)
        have = have[first]
        kinds = {
            "missing": _without(want, have),
            "duplicate": np.repeat(have, times - 1, axis=0),
        }
        spurious = _without(have, may)
        holds = _holds(query, files, stream, spurious)
        kinds["expired"], kinds["wrong"] = spurious[holds], spurious[~holds]
        for kind, pairs in kinds.items():
            setattr(differences, kind, getattr(differences, kind) + len(pairs))
            named = pairs[: OFFENDERS_NAMED - len(offenders)].tolist()
            offenders += [_offender(kind, stream, *ids) for ids in named]


def _offender(kind: str, stream: int, probe_id: int, *matches: int) -> Offender:
    match_id = matches if len(matches) > 1 else matches[0]
    return Offender(
        kind=kind, probe_stream=stream, probe_id=probe_id, match_id=match_id, arrivals_ms={}
    )


def arrivals_of_offenders(
    offenders: Iterable[Offender],
    files: tuple[StreamData, ...],
    disorder: Disorder | Recorded | None,
) -> dict[tuple[int, int], int]:
    """Return the arrival number of each probing tuple of *offenders*, by its stream and id."""
    wanted = {(one.probe_stream, one.probe_id) for one in offenders}
    numbers: dict[tuple[int, int], int] = {}
    feed = open_feed(files, disorder)
    while len(numbers) < len(wanted) and (chunk := feed.take(expectation.CHUNK_ROWS)) is not None:
        for stream, probe_id in wanted - numbers.keys():
            place = np.flatnonzero(chunk.parts[stream].id == probe_id)
            if len(place):
                numbers[stream, probe_id] = int(chunk.seq[stream][place[0]])
    return numbers


def _expected_and_allowed(
    query: JoinQuery,
    files: tuple[StreamData, ...],
    late: tuple[np.ndarray, ...],
    *,
    again: bool,
) -> Iterator[tuple[Matches, Matches]]:
    """Yield the matches that a run must have, and those that it may have, of the same tuples."""
    expected = expectation.expected_sums(query, files, late, enumerate_ids=True)
    if again and any(map(len, late)):
        allowed = expectation.expected_sums(query, files, enumerate_ids=True)
        return zip(expected, allowed, strict=True)
    return ((matches, matches) for matches in expected)


def _read_pairs(directory: Path, query: JoinQuery, stream: int, suspects: np.ndarray) -> np.ndarray:
    """Return the listed results of *suspects*, which ascend, as rows (probe id, match ids)."""
    names = id_columns(query.streams, stream)
    of_stream = pc.field("probe_stream") == stream
    between = (pc.field(names[0]) >= suspects[0]) & (pc.field(names[0]) <= suspects[-1])
    # Row groups without such ids are not read: the statistics of the file show which.
    pairs = pq.read_table(pairs_path(directory), columns=names, filters=of_stream & between)
    return _pairs_of(*(pairs[name].to_numpy() for name in names), suspects=suspects)


def _matches_of(matches: Matches, suspects: np.ndarray) -> np.ndarray:
    """Return the results of *suspects* among *matches* as rows (probe id, match ids)."""
    probe_id, match_id = matches.pairs()
    return _pairs_of(probe_id, *np.atleast_2d(match_id.T), suspects=suspects)


def _pairs_of(*ids: np.ndarray, suspects: np.ndarray) -> np.ndarray:
    """Return the results of *suspects* as rows (probe id, match ids)."""
    mine = np.isin(ids[0], suspects)
    return np.stack([column[mine] for column in ids], axis=1)


def _sums_of(pairs: np.ndarray, suspects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many of *pairs* each of *suspects* has, and their fingerprint."""
    place = np.searchsorted(suspects, pairs[:, 0])
    fingerprint = np.zeros(len(suspects), np.uint64)
    np.add.at(fingerprint, place, mix_rows(list(pairs.T[1:])))
    return np.bincount(place, minlength=len(suspects)), fingerprint


def _without(pairs: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the rows of *pairs* that are not rows of *others*."""
    ranks = _row_ranks(np.concatenate([pairs, others]))
    return pairs[~np.isin(ranks[: len(pairs)], ranks[len(pairs) :])]


def _row_ranks(rows: np.ndarray) -> np.ndarray:
    """Return for each of *rows* its rank among them by column after column; equal rows have one.

    Numbers are sorted ten times as fast as rows are compared.
    """
    ranks = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, place = np.unique(column, return_inverse=True)
        _, ranks = np.unique(ranks * len(values) + place, return_inverse=True)
    return ranks


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
