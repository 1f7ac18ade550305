"""What runs, studies and comparisons return: figures as numbers, tables as Arrow tables."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from html import escape
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from weakref import finalize

import pyarrow as pa
import pyarrow.parquet as pq

from actors.result_files import late_path, pairs_path, summary_path
from actors.whole_files import at_home
from joinsim._arguments import check_methods
from scenarios.formatting import VERDICT_WORDS, TextTable, format_many, notebook_html
from scenarios.report.result_tables import (
    advice_table,
    changes_table,
    chart_table,
    claims_table,
    comparison_table,
    engine_notes,
    engines_table,
    reproduction_table,
)
from scenarios.report.run_summary import summary, summary_html, summary_text
from scenarios.result_readers import JoinedColumns
from scenarios.run import FinishedRun
from scenarios.run_directory import RUN_RECORD, TRACE, WrittenResult
from scenarios.scenario_files import ConfigError
from scenarios.tables import with_texts
from scenarios.verdict import Verdict

if TYPE_CHECKING:  # by name below, in what the classes are generic in
    from scenarios.advice import CandidateRanking  # noqa: F401
    from scenarios.config import RunConfig
    from scenarios.engines.comparison import EngineRanking  # noqa: F401
    from scenarios.many_runs import SystemRanking  # noqa: F401
    from scenarios.study.findings import Findings  # noqa: F401
    from scenarios.study.reproduction import ReproducedPaper  # noqa: F401


class TemporaryFolder:
    """A folder that is removed with this object.

    `tempfile.TemporaryDirectory` would warn of a resource that nobody has closed.

    Attributes
    ----------
    path
        Where it is.
    """

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="joinsim-"))
        finalize(self, rmtree, self.path, ignore_errors=True)


@check_methods
class Run:
    """A finished run.

    Attributes
    ----------
    verdict
        Whether the answer was exactly right: `Verdict.passed` is true, false, or None where
        nothing was tested; its ``checks`` say what was looked at.
    digest
        Identity of the run's trace: the same seed has the same digest everywhere. None for a live
        run, whose messages meet in an order of their own.
    directory
        The run's folder: ``run.json``, ``trace.parquet``, ``results.parquet`` and so on. A
        temporary one lasts as long as this object. Where another run was written into it, what is
        read from it is refused.
    seed
        The seed that repeats the run.
    replay
        The call or command that repeats it.
    finished
        The run as the packages below know it, for `scenarios.report` and the like.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> run = js.run(query, {"T": {"x": np.arange(100) % 7}}, topology="split_join", pes=2)
    >>> run.verdict.passed, run.pairs.num_rows, run.network.column_names
    (True, 738, ['sender', 'receiver', 'messages', 'bytes'])
    """

    def __init__(
        self, finished: FinishedRun, replay: str, folder: TemporaryFolder | None = None
    ) -> None:
        self.finished = finished
        self.verdict: Verdict = finished.verdict
        self.digest = finished.outcome.digest
        self.directory = finished.directory
        self.seed = finished.plan.config.seed
        self.replay = replay
        self._folder = folder  # removed with this object
        self._written = _moment_of(self.directory)

    def __fspath__(self) -> str:
        """Return its folder, as paths do: `joinsim.diff` and `pathlib.Path` take a run."""
        return str(self._checked.directory)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The stable keys of ``run.json``: throughput, latency percentiles, network and so on."""
        return summary(self._checked)

    @property
    def streams(self) -> dict[str, pa.Table]:
        """Stream name to its tuples in order of event time: an id is a row of this table.

        A stream that was passed as a table has a column ``row``: each tuple's place in that table.
        """
        return {one.name: with_texts(one) for one in self.finished.plan.streams}

    @property
    def pairs(self) -> pa.Table:
        """The pairs found: ``probe_stream``, ``probe_id``, ``match_id``, all positions.

        In a join of more than two streams: ``probe_stream`` and an id column per stream. Raise
        :exc:`ConfigError` where the run only counted them.
        """
        path = pairs_path(self._checked.directory)
        if not path.exists():
            raise ConfigError("this run counted its pairs: run it with pairs=True to list them")
        return pq.read_table(path)

    @property
    def joined(self) -> pa.Table:
        """The columns that the query selects, a row per pair; ``*`` is all columns of all streams.

        In a self join ``x1`` is of the newer tuple, ``x2`` of the earlier. Raise
        :exc:`ConfigError` where the run only counted its pairs.
        """
        plan, folder = self.finished.plan, self._checked.directory
        if not pairs_path(folder).exists():
            raise ConfigError("this run counted its pairs: run it with pairs=True to join them")
        joined = JoinedColumns(plan.query, plan.streams, folder)
        batches = [batch for table in joined for batch in table.to_batches()]
        return pa.Table.from_batches(batches, joined.schema)

    @property
    def latency(self) -> pa.Table:
        """Per report of a probing tuple: its stream, its id, its number of pairs, its latency.

        The latency is in ns since the tuple came into being.
        """
        parts = []
        for number in range(len(self.finished.plan.query.streams)):
            path = summary_path(self._checked.directory, number)
            part = pq.read_table(path, columns=["probe_id", "count", "latency_ns"])
            stream = pa.array([number] * len(part), pa.int8())
            parts.append(part.add_column(0, "probe_stream", stream))
        return pa.concat_tables(parts)

    @property
    def late(self) -> pa.Table:
        """Tuples that were dropped because they came behind their watermark."""
        return pq.read_table(late_path(self._checked.directory))

    @property
    def trace(self) -> pa.Table:
        """Every message and timer that was served, a row each.

        Its columns: ``sender``, ``receiver`` and ``port``; ``seq``, which counts the sender's;
        ``nbytes``, ``rows``, ``first`` and ``last`` (the arrivals that it is about, by number); and
        in ns ``sent_ns``, ``left_ns``, ``arrived_ns``, ``started_ns`` and ``done_ns``.
        """
        return pq.read_table(self._checked.directory / TRACE)

    @property
    def network(self) -> pa.Table:
        """Per channel: ``sender``, ``receiver``, ``messages`` and ``bytes``."""
        trace = self.trace.select(["sender", "receiver", "nbytes"])
        trace = trace.filter(pa.compute.field("sender") != pa.compute.field("receiver"))
        grouped = trace.group_by(["sender", "receiver"], use_threads=False)
        sums = grouped.aggregate([("nbytes", "count"), ("nbytes", "sum")])
        return sums.rename_columns(["sender", "receiver", "messages", "bytes"])

    def report(self, path: str | Path) -> Path:
        """Write the run's report, one HTML page that works offline, to *path*; return it.

        Raise :exc:`ConfigError` where *path* ends in neither ``.html`` nor ``.htm``.
        """
        from scenarios.report.run_pages import write_report

        page = _page(path)
        write_report(self._checked, page, self.replay)
        return page

    def figure(self, path: str | Path) -> Path:
        """Draw latency and throughput over time into a file, for print; return *path*.

        Its suffix is ``.pdf``, ``.svg`` or ``.png``; the data goes beside it as CSV.
        """
        return _draw(self._checked, path)

    def __repr__(self) -> str:
        return summary_text(self.finished) if self._is_there else self._gone

    def _repr_html_(self) -> str:
        return summary_html(self.finished) if self._is_there else f"<p>{escape(self._gone)}</p>"

    @property
    def _is_there(self) -> bool:
        return self._written is not None and _moment_of(self.directory) == self._written

    @property
    def _gone(self) -> str:
        config = self.finished.plan.config
        return (
            f"{self.directory} no longer has this run, of {config.name} on {config.topology}: "
            "another was written there, or the folder was removed; give each an out= of its own"
        )

    @property
    def _checked(self) -> FinishedRun:
        """The run; raise :exc:`ConfigError` where its folder has another by now, or is gone."""
        if not self._is_there:
            raise ConfigError(self._gone)
        return self.finished


Result = TypeVar("Result", bound=WrittenResult)


@check_methods
class _Several(ABC, Generic[Result]):
    """What came of several runs.

    Attributes
    ----------
    result
        What the packages below return, for `scenarios.report` and the like.
    directory
        The folder with a JSON file, and with a folder for each run.
    replay
        The call or command that repeats it.
    """

    def __init__(
        self,
        result: Result,
        directory: Path,
        replay: str,
        folder: TemporaryFolder | None = None,
    ) -> None:
        self.result = result
        self.directory = directory
        self.replay = replay
        self._folder = folder  # removed with this object

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Everything as plain data, as in the JSON file."""
        return self.result.as_json(self.replay)

    def report(self, path: str | Path) -> Path:
        """Write the report, one HTML page that works offline, to *path*; return it.

        Raise :exc:`ConfigError` where *path* ends in neither ``.html`` nor ``.htm``.
        """
        from scenarios.report.result_pages import write_page

        return write_page(self.result, _page(path), self.replay)

    def figure(self, path: str | Path) -> Path:
        """Draw its picture into a file, for print; return *path*.

        Its suffix is ``.pdf``, ``.svg`` or ``.png``; the data goes beside it as CSV.
        """
        return _draw(self.result, path)

    def write(self) -> Self:
        """Write the JSON file and the page into its directory; return it."""
        self.result.write_json(self.directory, self.replay)
        self.report((self.directory / self.result.file).with_suffix(".html"))
        return self

    def _repr_html_(self) -> str:
        return notebook_html(self._opening(), self._tables())

    def _opening(self) -> str:
        """Return what a notebook shows above the tables."""
        return repr(self)

    @abstractmethod
    def _tables(self) -> list[TextTable]:
        """Return the tables that a notebook shows."""


class StudyRun(_Several["Findings"]):
    """A finished study: many runs, the curves they make, and the claims about them.

    Its ``directory`` has ``study.json``.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> streams, over = {"T": {"x": np.arange(100) % 7}}, {"pes": [1, 2]}
    >>> js.sweep(query, streams, over=over, topology="split_join", processes=1)
    custom: 2 runs
    """

    @property
    def claims(self) -> pa.Table:
        """The paper's claims: ``text``, ``panel``, whether each ``holds``, ``values``."""
        return _table(self.summary["claims"], ["text", "panel", "holds", "values"])

    @property
    def points(self) -> pa.Table:
        """The runs: their number, label, digest, tuples, throughput, verdict and failure.

        What the study measures of them is in ``summary["charts"]``, curve by curve.
        """
        keys = ["number", "label", "digest", "tuples", "throughput_tps", "passed", "failure"]
        return _table(self.summary["points"], keys)

    def __repr__(self) -> str:
        claims, runs = self.summary["claims"], len(self.summary["points"])
        hold = sum(claim["holds"] is True for claim in claims)
        ran = f"{self.summary['study']}: {format_many(runs, 'run')}"
        return f"{ran}, {hold} of {len(claims)} claims hold" if claims else ran

    def _tables(self) -> list[TextTable]:
        charts = [chart_table(self.result, chart) for chart in self.result.study.charts]
        return [*charts, claims_table(self.result)]


class Reproduction(_Several["ReproducedPaper"]):
    """All figures and tables of a paper: the claims about them, and what came of each.

    Its ``directory`` has ``reproduce.json``, ``reproduce.html``, ``reproduction.md``, and a folder
    for each study.

    Examples
    --------
    `reproduce` takes a minute or more to return one; before any study has run, it is this:

    >>> import joinsim as js
    >>> from pathlib import Path
    >>> from scenarios.study.reproduction import ReproducedPaper
    >>> nothing = ReproducedPaper(paper="panjoin", scale="smoke", studies=())
    >>> done = js.Reproduction(nothing, Path("runs"), "joinsim reproduce panjoin --scale smoke")
    >>> done.passed, done.claims.num_rows
    (None, 0)
    """

    @property
    def claims(self) -> pa.Table:
        """The claims: ``study``, ``text``, ``stated``, ``measured``, ``holds``, ``why`` and so on.

        ``holds`` is null where there is nothing to compare.
        """
        keys = ["study", "figure", "panel", "text", "stated", "measured", "holds", "why"]
        return _table(self.summary["claims"], keys)

    @property
    def counts(self) -> dict[str, int]:
        """Claims that were tested, hold, fail with and without a reason, cannot be compared."""
        counts: dict[str, int] = self.summary["counts"]
        return counts

    @property
    def passed(self) -> bool | None:
        """Whether every claim holds or has a reason not to, and every run passed its checks.

        None where no claim was tested.
        """
        return self.result.passed

    def __repr__(self) -> str:
        from scenarios.study.reproduction import ClaimCounts

        words = ClaimCounts.of(self.result.claims)
        mistakes = [f"{one.name}: {why}" for one in self.result.studies for why in one.mistakes]
        return "\n".join([f"{self.result.title}, {self.result.scale} scale", str(words), *mistakes])

    def _tables(self) -> list[TextTable]:
        return [reproduction_table(self.result.claim_records)]


class Comparison(_Several["SystemRanking"]):
    """One query on several systems, fastest first.

    Its ``directory`` has ``compare.json``.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> streams = {"T": {"x": np.arange(100) % 7}}
    >>> compared = js.compare(query, streams, topologies=["nested_loop", "split_join"])
    >>> compared.fastest, compared.table.num_rows, compared.refused
    ('nested_loop', 2, {})
    """

    @property
    def fastest(self) -> str | None:
        """The exact system of highest throughput; None where none was exact."""
        return self.result.fastest

    @property
    def refused(self) -> dict[str, str]:
        """System to the reason why it cannot evaluate the query."""
        return self.result.refused

    @property
    def table(self) -> pa.Table:
        """A row per system, fastest first.

        Its columns: ``label``, ``topology``, ``passed``, ``throughput_tps``, ``digest``,
        ``failure``, ``p50_ms`` and ``p99_ms`` (of the latency), ``messages``, ``bytes``.
        """
        keys = ["label", "topology", "passed", "throughput_tps", "digest", "failure"]
        rows = [
            {key: system[key] for key in keys}
            | {f"{name}_ms": (system["latency_ms"] or {}).get(name) for name in ("p50", "p99")}
            | {name: (system["network"] or {}).get(name) for name in ("messages", "bytes")}
            for system in self.summary["systems"]
        ]
        return _table(rows, list(rows[0]))

    def __repr__(self) -> str:
        return "\n".join([*_ranked(self.table, "label", "passed"), self._opening()])

    def _opening(self) -> str:
        fastest = f"fastest exact: {self.fastest or 'none'}"
        refused = f"{format_many(len(self.refused), 'system')} cannot evaluate the query"
        return f"{fastest}\n{refused}" if self.refused else fastest

    def _tables(self) -> list[TextTable]:
        return [comparison_table(self.result)]


class Advice(_Several["CandidateRanking"]):
    """Which topology to choose: candidates ranked, why, and what would change that.

    Its ``directory`` has ``advice.json`` and ``advice.toml``, which runs the winner unless a stream
    was a table in memory.

    Examples
    --------
    >>> import numpy as np, joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> streams, system = {"T": {"x": np.arange(100) % 7}}, ["nested_loop"]
    >>> advice = js.advise(query, streams, topologies=system, seeds=1, engines="")
    >>> advice.best.topology, advice.why[:19]
    ('nested_loop', 'nested_loop is best')
    """

    @property
    def best(self) -> RunConfig:
        """The configuration that is best."""
        return self.result.winning_config

    @property
    def why(self) -> str:
        """Why it is, with the numbers that decide."""
        return self.result.why

    @property
    def table(self) -> pa.Table:
        """A row per candidate, the best first.

        Its columns: ``label``, ``topology``, ``machines``, ``cores``, ``pes``, ``rows``,
        ``keeps_up``, ``trade_off``, ``price``, and the mean by each goal.
        """
        from scenarios.topology_search import GOALS

        keys = ["label", "topology", "machines", "cores", "pes", "rows", "keeps_up", "trade_off"]
        rows = [
            {key: one[key] for key in (*keys, "price")}
            | {goal: one[goal] and one[goal]["mean"] for goal in GOALS}
            for one in self.summary["candidates"]
        ]
        return _table(rows, [*keys, "price", *GOALS])

    def __repr__(self) -> str:
        return f"{self.summary['advice']}\n{self.why}"

    def _tables(self) -> list[TextTable]:
        return [advice_table(self.result), changes_table(self.result)]


class EngineComparison(_Several["EngineRanking"]):
    """One query on several real engines, fastest first.

    Its ``directory`` has ``compare.json``.

    Examples
    --------
    >>> import joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> stream = {"name": "T", "synthetic": {"rows": 60, "fields": {"x": "uniform(1, 9)"}}}
    >>> scenario = js.Scenario({"query": query, "streams": [stream], "topology": "nested_loop"})
    >>> compared = scenario.compare_engines("duckdb")
    >>> compared.passed, compared.table["engine"].to_pylist()
    (True, ['duckdb'])
    """

    @property
    def passed(self) -> bool | None:
        """Whether all engines that ran found exactly the expected pairs; None if none could."""
        return self.result.passed

    @property
    def refused(self) -> dict[str, str]:
        """Engine to the reason why it cannot evaluate the query."""
        return self.result.refused

    @property
    def failed(self) -> dict[str, str]:
        """Engine to the reason why its run failed."""
        return self.result.failed

    @property
    def table(self) -> pa.Table:
        """A row per engine that ran, fastest first.

        Its columns: ``engine``, ``version``, ``equal`` (its pairs are the expected ones),
        ``pairs``, ``throughput_tps``, ``steady_tps``, ``wall_seconds``, ``start_seconds``,
        ``shuffled_bytes``, ``memory_bytes``.
        """
        keys = ["engine", "version", "equal", "pairs", "throughput_tps", "steady_tps"]
        keys += ["wall_seconds", "start_seconds", "shuffled_bytes", "memory_bytes"]
        return _table(self.summary["engines"], keys)

    def __repr__(self) -> str:
        return "\n".join([*_ranked(self.table, "engine", "equal"), self._opening()])

    def _opening(self) -> str:
        lines = [f"all pairs equal: {VERDICT_WORDS[self.passed]}"]
        lines += [f"{engine} failed: {why}" for engine, why in self.failed.items()]
        lines += [f"{engine} did not run: {why}" for engine, why in self.refused.items()]
        return "\n".join(lines)

    def _tables(self) -> list[TextTable]:
        return [engines_table(self.result), engine_notes(self.result)]


def report(runs: Iterable[Run | str | Path], path: str | Path) -> Path:
    """Write one page of several runs, or of their folders, side by side; return *path*.

    Curves over time share their axes, so that runs can be compared point by point. Raise
    :exc:`ConfigError` naming a folder that has no finished run, and where *path* ends in neither
    ``.html`` nor ``.htm``.

    Examples
    --------
    >>> import tempfile, joinsim as js
    >>> streams = {"T": js.synthetic(60, {"x": "uniform(1, 9)"})}
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> runs = [js.run(query, streams, topology=name) for name in ("split_join", "scale_join")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     js.report(runs, f"{folder}/runs.html").stat().st_size > 10_000
    True
    """
    from scenarios.report.run_pages import RunRecord, write_runs_page

    page = _page(path)
    records = [
        RunRecord.of(one._checked) if isinstance(one, Run) else RunRecord.read(Path(one))
        for one in runs
    ]
    words = ["joinsim", "report", *(one.where for one in records), "--out", str(path)]
    return write_runs_page(records, page, shlex.join(words))


def _page(path: str | Path) -> Path:
    """Return *path* if it is the name of an HTML page."""
    page = at_home(path)
    if page.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"{page}: a report is a page whose name ends in .html or .htm")
    return page


def _moment_of(directory: Path) -> tuple[int, int] | None:
    """Return by what a later run in *directory* differs from this one; None where there is none."""
    try:
        record = (directory / RUN_RECORD).stat()
    except OSError:
        return None
    return record.st_ino, record.st_mtime_ns


def _ranked(table: pa.Table, name: str, passed: str) -> Iterator[str]:
    """Yield a line per row of *table*: its name, its verdict, and its tuples a second."""
    for row in table.to_pylist():
        if row.get("failure"):
            yield f"{row[name]:<28} failed: {row['failure']}"
            continue
        rate_tps = row["throughput_tps"] or 0
        yield f"{row[name]:<28} {VERDICT_WORDS[row[passed]]:<8} {rate_tps:>14,.0f} /s"


def _draw(result: Any, path: str | Path) -> Path:
    from scenarios.report.picture import write_figure
    from scenarios.report.result_pages import picture_of

    file = at_home(path)
    write_figure(picture_of(result), file)
    return file


def _table(rows: Iterable[dict[str, Any]], keys: list[str]) -> pa.Table:
    listed = [{key: row.get(key) for key in keys} for row in rows]
    return pa.Table.from_pylist(listed) if listed else pa.table({key: [] for key in keys})
