"""What came out against the oracle: sums of every tuple first, pairs only where they differ.

Of each probing tuple the oracle knows how many pairs it has, and their fingerprint. Compared with
that are the sums that the run reported and, where it listed its pairs, the sums of the list as it
is on disk. A row of a tuple that does not exist is read too: what it claims is too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.feed import StreamData
from actors.result_files import id_columns, pairs_path, summary_path
from joins.batch import Batch
from joins.errors import DataError
from joins.hashing import mix, mix_rows
from joins.matches import Matches
from joins.oracle.match import clear_unsatisfied
from joins.queries.conditions import Field
from joins.queries.query import JoinQuery
from joins.semijoins.value_sample import TupleSample, ValueSample
from joins.sliding_column import values_at
from scenarios.plan import Plan
from scenarios.result_readers import LatencyHistogram, ListedPairs, Summaries
from scenarios.verdict import OFFENDERS_NAMED, Offender, Verdict, expectation
from scenarios.verdict.arrival_checks import LatencyCheck
from scenarios.verdict.expectation import Expectation
from topologies.topology import Approximation


class _Differing(NamedTuple):
    """Tuples of a stream whose sums are not as expected, ascending, and the sums they have."""

    ids: np.ndarray
    pairs: np.ndarray
    fingerprint: np.ndarray


class PairComparison:
    """The results of a run, compared with the oracle's.

    Parameters
    ----------
    plan
        What was run.
    directory
        Where the run's per-probe counts are, and its pairs where it listed them.
    pairs_directory
        Called only when something differs: returns where the same run's pairs are, replaying it if
        they were not kept.
    verdict
        Gets the counts of pairs, and the first differing pairs of probing tuples that exist,
        without arrivals.
    late
        Per stream the tuples that the run dropped as late; no pair of theirs is expected.
    again
        Whether tuples may come again, after a crash: one that is late then may have been joined
        before, so its pairs are neither expected nor spurious.
    ahead
        What the oracle has worked out already, of use where no tuple was late.
    approximation
        What the run keeps, where it leaves results out on purpose.
    latency_check
        Is given the latencies of all tuples.

    Attributes
    ----------
    listed
        Whether the run listed its pairs.
    stray_rows
        Rows, of reports and of the list, that belong to no probing tuple.
    odd_rows
        Rows of reports that no actor can have sent.
    reported, by_sender
        Pairs that reports claim, and their rows by the rank of the actor that sent them.
    answered_late
        Tuples that were dropped as late, and answered.
    most_copies
        How often the pair came that came most often, of tuples with a pair that differs.
    strays
        The first listed pairs of no probing tuple that exists; with the verdict's offenders,
        `OFFENDERS_NAMED` at most.
    latencies
        Of every tuple, in nanoseconds.
    """

    def __init__(
        self,
        plan: Plan,
        directory: Path,
        pairs_directory: Callable[[], Path],
        verdict: Verdict,
        *,
        late: tuple[np.ndarray, ...],
        again: bool,
        ahead: Expectation | None,
        approximation: Approximation | None,
        latency_check: LatencyCheck,
    ) -> None:
        self._query, self._files, self._verdict = plan.query, plan.files, verdict
        self._late = late if plan.query.interval or plan.feeding.disorder else ()
        self.listed = plan.config.pairs
        self.latencies = LatencyHistogram()
        self.stray_rows = self.odd_rows = self.reported = self.answered_late = 0
        self.most_copies = 0
        self._probing = [file.tuples for file in plan.files]
        if plan.query.interval:
            self._probing[1 - plan.query.bound_interval.base] = 0
        actors = len(plan.graph())
        reports = [
            Summaries(summary_path(directory, stream), tuples, actors)
            for stream, tuples in enumerate(self._probing)
        ]
        listed = None
        if self.listed:
            listed = ListedPairs(
                pairs_path(directory),
                self._query.streams,
                self._probing,
                strays_max=OFFENDERS_NAMED,
            )
        kept = _kept_tuples(approximation.kept, plan.files) if approximation else None
        differing = self._compare_sums(reports, listed, kept, ahead, latency_check)
        self.by_sender = np.sum([report.by_sender for report in reports], axis=0)
        verdict.differing_tuples = sum(len(one.ids) for one in differing)
        if verdict.differing_tuples:
            # A run in virtual time that did not list its pairs reported what its replay lists, or
            # the pairs say nothing about it. A live run's replay need not be the same.
            replayed = not self.listed and plan.config.clock == "virtual"
            self._compare_pairs(pairs_directory(), differing, again=again, replayed=replayed)
        verdict.wrong += verdict.invented
        strays = listed.strays[: OFFENDERS_NAMED - len(verdict.offenders)] if listed else []
        self.strays = [_offender("wrong", *stray) for stray in strays]

    def _compare_sums(
        self,
        reports: Sequence[Summaries],
        listed: ListedPairs | None,
        kept: Sequence[np.ndarray] | None,
        ahead: Expectation | None,
        latency_check: LatencyCheck,
    ) -> list[_Differing]:
        """Return per stream the tuples whose sums are not as expected."""
        verdict, late = self._verdict, self._late
        nothing = _Differing(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint64))
        differing = [[nothing] for _ in self._probing]
        for expected in self._expected_sums(ahead):
            stream, stop = expected.stream, int(expected.probe_id[-1]) + 1
            found = reports[stream].take(stop)
            count, fingerprint = found.pairs, found.fingerprint
            verdict.expected += expected.total
            self.reported += int(count.sum())
            self.latencies.add(found.latest[found.latest >= 0])
            latency_check.add_latencies(stream, int(expected.probe_id[0]), found.latest)
            if listed:
                count, fingerprint = listed.take(stream, stop)
                unlike = (found.pairs != count) | (found.fingerprint != fingerprint)
                verdict.inconsistent += int(unlike.sum())
            if late and len(late[stream]):
                answered = expected.probe_id[count > 0]
                place = np.searchsorted(late[stream], answered)  # both ascend
                self.answered_late += int((values_at(late[stream], place, -1) == answered).sum())
            if kept:
                # All tuples of a result have one value: with the probing tuple the result is kept.
                here = kept[stream][expected.probe_id]
                other_count = count != expected.count * here
                off = other_count | (fingerprint != expected.fingerprint * here)
                verdict.off_sample += int(off.sum())
            unlike = (count != expected.count) | (fingerprint != expected.fingerprint)
            differing[stream].append(
                _Differing(expected.probe_id[unlike], count[unlike], fingerprint[unlike])
            )
        for report in reports:
            report.finish()
            self.stray_rows += report.sums.stray_rows
            self.odd_rows += report.odd_rows
            self.reported += report.sums.stray_pairs
            verdict.invented += report.sums.stray_pairs
        verdict.produced = self.reported
        if listed:
            listed.finish()
            verdict.produced, verdict.invented = listed.rows, listed.stray_rows
            self.stray_rows += listed.stray_rows
        return [_Differing(*map(np.concatenate, zip(*parts, strict=True))) for parts in differing]

    def _expected_sums(self, ahead: Expectation | None) -> Iterator[Matches]:
        """Yield what the oracle expects; raise :exc:`DataError` where tuples that probe lack."""
        if ahead is None or any(map(len, self._late)):
            sums = expectation.expected_sums(self._query, self._files, self._late)
        else:
            sums = ahead.sums()
        stops = [0] * len(self._probing)
        for expected in sums:
            if len(expected):
                stops[expected.stream] = int(expected.probe_id[-1]) + 1
                yield expected
        for name, stop, tuples in zip(self._query.streams, stops, self._probing, strict=True):
            if stop < tuples:
                raise DataError(
                    f"stream {name!r}: the oracle ended at tuple {stop:,} of {tuples:,}: the "
                    "answer cannot be judged"
                )

    def _compare_pairs(
        self, directory: Path, differing: list[_Differing], *, again: bool, replayed: bool
    ) -> None:
        """Count the pairs that differ by kind, and name the first."""
        verdict, query, files = self._verdict, self._query, self._files
        for expected, allowed in self._expected_and_allowed(again=again):
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
                verdict.inconsistent += int(np.any(unlike, axis=0).sum())
            _, first, times = np.unique(_row_ranks(have), return_index=True, return_counts=True)
            have = have[first]
            self.most_copies = max(self.most_copies, int(times.max(initial=0)))
            spurious = _without(have, may)
            holds = _holds(query, files, stream, spurious)
            for kind, pairs in {
                "missing": _without(want, have),
                "duplicate": np.repeat(have, times - 1, axis=0),
                "expired": spurious[holds],
                "wrong": spurious[~holds],
            }.items():
                setattr(verdict, kind, getattr(verdict, kind) + len(pairs))
                named = pairs[: OFFENDERS_NAMED - len(verdict.offenders)].tolist()
                verdict.offenders += [_offender(kind, stream, *ids) for ids in named]

    def _expected_and_allowed(self, *, again: bool) -> Iterator[tuple[Matches, Matches]]:
        """Yield the matches that a run must have, and those that it may have, tuple by tuple."""
        sums = partial(expectation.expected_sums, self._query, self._files, enumerate_ids=True)
        expected = sums(late=self._late)
        if again and any(map(len, self._late)):
            return zip(expected, sums(), strict=True)
        return ((matches, matches) for matches in expected)


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


def _offender(kind: str, stream: int, probe_id: int, *matches: int) -> Offender:
    match_id = matches if len(matches) > 1 else matches[0]
    return Offender(
        kind=kind, probe_stream=stream, probe_id=probe_id, match_id=match_id, arrivals_ms={}
    )


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
    order = [stream, *(other for other in range(len(files)) if other != stream)]
    streams = order * 2 if query.is_self_join else order
    tuples_of = np.array([files[place].tuples for place in streams])
    exist: np.ndarray = np.all((pairs >= 0) & (pairs < tuples_of), axis=1)
    if not exist.any():
        return exist
    tuples = [_fetch(files[place], ids) for place, ids in zip(streams, pairs[exist].T, strict=True)]

    def value(field: Field) -> np.ndarray:
        place = field.role - 1 if query.is_self_join else order.index(field.stream)
        return tuples[place].fields[field.name]

    holds = np.ones(len(tuples[0]), np.bool_)
    clear_unsatisfied(holds, query.predicates, value)
    exist[exist] = holds
    return exist


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
