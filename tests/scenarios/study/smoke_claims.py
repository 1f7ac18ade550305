"""Which claims of the catalog hold at smoke scale: all studies run here, and a committed record.

``python -m tests.scenarios.study.smoke_claims [STUDY ...]`` runs them and writes the record anew,
and prints what has changed. Values of this machine's clock are not run: they are not the same
twice. Streams are prepared in memory, which takes a tenth of a second where Spark takes ten; where
a study selects rows by an expression, it takes Spark.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np

from actors.feed import StreamData, StreamFile
from joins.matches import Matches
from joins.queries.query import JoinQuery
from scenarios import scenario_files
from scenarios.config import RunConfig, StreamConfig
from scenarios.preparation import prepare_by_spark, prepare_tables
from scenarios.report.result_tables import holds_word
from scenarios.streams import SAMPLES, find_file
from scenarios.study.findings import Findings
from scenarios.study.point_runs import plan_points, run_points
from scenarios.study.section import Claim
from scenarios.study.study import Chart, Study, load_study
from scenarios.verdict import expectation
from spark_bridge.prepared import PreparedStream

RECORD = Path(__file__).with_name("smoke_claims.json")
SCALE = "smoke"
ON_OTHER_DATA = ("panjoin-fig10f", "semijoin-fig10", "spo-fig08")
"""Studies of data that does not come with joinsim: they have no place in the record."""

Words = dict[str, str]
"""Each claim of a study in a panel, to the word for what came of it."""

_PREPARED: dict[tuple[str, ...], tuple[PreparedStream, ...]] = {}
"""Streams that several points, or studies, share."""


def read_record() -> dict[str, Words]:
    """Return the committed record: study to its claims."""
    record: dict[str, Words] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def studies() -> list[str]:
    """Return the names of the catalog's studies whose data comes with joinsim."""
    is_study = scenario_files.is_study
    return [
        name for name in scenario_files.catalog() if is_study(name) and name not in ON_OTHER_DATA
    ]


STEADY = ("panjoin-fig15a", "panjoin-fig15b", "panjoin-fig15d", "spo-fig09", "spo-fig17")
"""Studies of throughput and capacity once windows are full."""

OF_LATENCY = "result_ms."


def interval_joins(*measures: str) -> list[str]:
    """Return the names of the interval joins' figures whose curves are of one of *measures*."""
    return [
        name
        for name in scenario_files.catalog()
        if name.startswith("oij-fig")
        and scenario_files.read(name).get("study", {}).get("measure", "").startswith(measures)
    ]


def load_simulated(name: str) -> Study:
    """Return a study at smoke scale without what is measured by this machine's clock."""
    study = load_study(name, scale=SCALE)
    assert study is not None
    charts = [
        replace(chart, curves=tuple(curve for curve in chart.curves if curve.kind != "measured"))
        for chart in study.charts
    ]
    claims = [
        claim.model_copy(update={"panel": (chart.panel.name,)})
        for claim in study.section.claims
        for chart in charts
        if study.section.is_about(claim, chart.panel) and _has_all(chart, claim)
    ]
    run = {
        number
        for chart in charts
        for curve in chart.curves
        for numbers in curve.points
        for number in numbers
    }
    return replace(
        study,
        section=study.section.model_copy(update={"claims": tuple(claims)}),
        charts=tuple(charts),
        points=tuple(point for point in study.points if point.number in run),
    )


def _has_all(chart: Chart, claim: Claim) -> bool:
    return set(claim.of) <= {curve.variant for curve in chart.curves}


def needs_spark(name: str) -> bool:
    """Return whether a study selects rows of its streams, or computes their time."""
    return any(_is_selected(**stream) for stream in _streams_in(scenario_files.read(name)))


def _streams_in(value: Any) -> Iterator[dict[str, Any]]:
    """Return every stream that a scenario's file describes, also along an axis."""
    if isinstance(value, dict):
        if "files" in value:
            yield {key: value.get(key) for key in ("where", "time")}
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _streams_in(one)


def _is_selected(where: str | None, time: str | None) -> bool:
    return bool(where) or not (time or "ts").isidentifier()


def run(name: str) -> Findings:
    """Run a study at smoke scale, and judge its claims."""
    study = load_simulated(name)
    plans = plan_points(study, prepare)
    with TemporaryDirectory() as folder, _asking_the_oracle_once():
        findings = run_points(
            study, plans, Path(folder), on_point=lambda *_: None, replay=lambda _: ""
        )
    failed = [result.failure for result in findings.results.values() if result.failure]
    assert not failed, f"{name}: {failed}"
    return findings


@contextmanager
def _asking_the_oracle_once() -> Iterator[None]:
    """Have points that ask the same query of the same tuples compared with one answer of it.

    It took half of the time of some studies. What is late differs from point to point.
    """
    answers: dict[Any, tuple[Sequence[StreamData], list[Matches]]] = {}
    work_out = expectation.expected_sums

    def expected_sums(
        query: JoinQuery,
        files: Sequence[StreamData],
        late: Sequence[np.ndarray] = (),
        **options: Any,
    ) -> Iterator[Matches]:
        if options or any(map(len, late)):
            yield from work_out(query, files, late, **options)
            return
        asked = (repr(query), *map(_tuples_of, files))
        if asked not in answers:
            # With its files: a table that is gone could leave its identity to another.
            answers[asked] = files, list(work_out(query, files))
        yield from answers[asked][1]

    with mock.patch.object(expectation, "expected_sums", expected_sums):
        yield


def _tuples_of(file: StreamData) -> tuple[Any, ...]:
    """Return what decides which tuples are read of a stream."""
    place = file.directory if isinstance(file, StreamFile) else id(file.table)
    return repr(file.schema), file.rows, place


def words_of(findings: Findings) -> Words:
    """Return what came of each claim."""
    words: Words = {}
    seen: Counter[str] = Counter()
    for finding in findings.claims:
        claim = finding.claim
        place = f" [{finding.panel}]" if finding.panel else ""
        text = f"{claim.text}{place}: {' / '.join(claim.of)}, {claim.stated}"
        seen[text] += 1
        words[text + (f" ({seen[text]})" if seen[text] > 1 else "")] = holds_word(
            finding.holds, undecided=finding.undecided
        )
    return words


def prepare(config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
    streams = tuple(_with_one_file(stream) for stream in config.streams)
    asked = (str(query.streams), str(query.predicates), *(s.model_dump_json() for s in streams))
    if asked in _PREPARED:
        return _PREPARED[asked]
    if any(_is_selected(stream.where, stream.time) for stream in streams):
        # A folder has the name of what it is prepared for: of one study or another.
        shared = config.model_copy(update={"streams": streams, "name": "smoke"})
        _PREPARED[asked] = prepare_by_spark(shared, query)
    else:
        tables = [stream.synthetic or stream.files[0] for stream in streams]
        _PREPARED[asked] = prepare_tables(query, tables, [stream.time for stream in streams])
    return _PREPARED[asked]


@cache
def _sample(files: tuple[str, ...]) -> str:
    """Return the one of *files* that is a sample, else the first that there is."""
    own = (SAMPLES / name for name in files)
    return str(next((path for path in own if path.exists()), None) or find_file(files))


def _with_one_file(stream: StreamConfig) -> StreamConfig:
    return stream.model_copy(update={"files": (_sample(stream.files),)}) if stream.files else stream


def main(names: Sequence[str]) -> None:
    """Run the studies *names*, or all, and write the record anew."""
    record = read_record() if RECORD.exists() else {}
    known = set(studies())
    for name in names or sorted(known):
        started, before = time.process_time(), record.get(name, {})
        record[name] = words_of(run(name))
        print(f"{name}: {time.process_time() - started:.1f} s")
        for text in sorted({*before, *record[name]}):
            was, now = before.get(text, "not in the record"), record[name].get(text, "gone")
            if was != now:
                print(f"  {was} -> {now}: {text}")
        ordered = {name: record[name] for name in sorted(known) if name in record}
        text = json.dumps(ordered, indent=2, ensure_ascii=False) + "\n"
        RECORD.write_text(text, encoding="utf-8")  # so that what breaks off has lost nothing


if __name__ == "__main__":
    main(sys.argv[1:])
