"""The command line: each command is a call of the public package, and prints what it returns.

Nothing heavy but typer is imported before a command runs; what commands share is in
`joinsim._command`.
"""

from __future__ import annotations

import json
from dataclasses import fields
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from joinsim._command import (
    CLOCK,
    EXIT_FAIL,
    EXIT_PASS,
    EXIT_STOPPED,
    Finished,
    Json,
    QueryOptions,
    QueryOrScenario,
    RunOptions,
    Scale,
    ScenarioName,
    Topologies,
    exit_code,
    parse_settings,
    replay_alone,
    scenario_of,
    split_names,
    with_options,
    worst_exit_code,
)
from joinsim._help import JOINS, PAPERS, SYSTEMS, Grouped, complete_topology

if TYPE_CHECKING:
    from joinsim._outcomes import EngineComparison, Run, StudyRun
    from joinsim._scenario import Scenario
    from scenarios.terminal.progress import Terminal
    from spark_bridge.prepared import PreparedStream

DEMO_SCENARIO = "spo-q3"
_PACKAGES = {"spark": "pyspark", "ray": "ray"}
"""What the extras that the demo uses install."""


app = typer.Typer(
    name="joinsim",
    help="A laboratory for distributed stream joins.\n\n"
    "Exit codes: 0 the verdict is pass, 1 fail, 2 unknown (nothing was tested), "
    "3 no verdict (bad input or a crash).",
    no_args_is_help=True,
    cls=Grouped,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(help="Raw files in, prepared streams out.", no_args_is_help=True)
app.add_typer(data_app, name="data", rich_help_panel=SYSTEMS)
new_app = typer.Typer(help="Writes a first version of something of your own.", no_args_is_help=True)
app.add_typer(new_app, name="new", rich_help_panel=SYSTEMS)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"joinsim {version('joinsim')}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Read the options that come before a command."""


@app.command(rich_help_panel=JOINS, epilog="Example: joinsim demo")
def demo(json_output: Json = False) -> None:
    """Prepare real taxi trips with Spark, join them on Ray and inline, and compare.

    Without Spark they are read as a table, and without Ray they are joined inline alone.
    """
    from joinsim import Run
    from joinsim._scenario import Scenario
    from scenarios.terminal.views import show_backends, show_report

    terminal = _terminal(json_output)
    absent = [name for name in ("spark", "ray") if find_spec(_PACKAGES[name]) is None]
    if absent:
        extras = ",".join(absent)
        terminal.note(f"without {' and '.join(absent)}: pip install 'joinsim[{extras}]' adds them")
    runs: list[Run] = []
    for backend in ("inline",) if "ray" in absent else ("ray", "inline"):
        replay = f"joinsim run {DEMO_SCENARIO} --backend {backend} --seed {{}}"
        chosen = Scenario(
            DEMO_SCENARIO,
            observer=terminal,
            keep=True,
            replay=replay.format,
            wall_clock=CLOCK.get(),
            streams=_demo_tables() if "spark" in absent else None,
        )
        run = chosen.run(backend=backend)
        assert isinstance(run, Run)  # the scenario is no study
        show_report(terminal.out, run.finished, run.replay)
        runs.append(run)
    equal = len({run.digest for run in runs}) == 1
    if len(runs) > 1:
        show_backends(terminal.out, [run.finished for run in runs], equal=equal)
    if json_output:
        _print_json({"runs": [run.summary for run in runs], "digests_equal": equal})
    codes = [exit_code(run.verdict.passed) for run in runs]
    raise Finished(EXIT_FAIL if not equal else max(codes))


def _demo_tables() -> tuple[PreparedStream, ...]:
    """Return the demo's streams, in memory."""
    from joins.queries.parser import parse_query
    from joinsim._scenario import Scenario
    from scenarios.streams import find_file
    from scenarios.tables import prepare_tables

    config = Scenario(DEMO_SCENARIO).config
    files = [find_file(stream.files) for stream in config.streams]
    query = parse_query(config.query)
    return prepare_tables(query, files, [stream.time for stream in config.streams])


@app.command("list", rich_help_panel=PAPERS, epilog="Example: joinsim list oij")
def list_(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Only what has all of these words in it, as in oij or inequality."),
    ] = None,
    json_output: Json = False,
) -> None:
    """List the scenarios, by paper, and the topologies."""
    from joinsim._listing import listing, search

    listed = search(listing(), words or [])
    if json_output:
        _print_json(listed)
        return
    from scenarios.terminal.catalog import show_catalog
    from scenarios.terminal.printing import console

    show_catalog(console(quiet=False), listed)


@app.command(
    rich_help_panel=JOINS,
    epilog="Example: joinsim run oij-w1 --rows 2000 --set feeding.rate_tps=50000",
)
@with_options(RunOptions)
def run(options: RunOptions, scenario: ScenarioName = None) -> int:
    """Run one join and judge the answer, or a study of many."""
    from joinsim import ConfigError, Run

    terminal = _terminal(options.json_output, watch=options.watch)
    if options.resume is not None:
        return _show_run(options, _resume(options, options.resume, scenario, terminal), terminal)
    chosen = scenario_of(options, scenario, terminal)
    if chosen.study is not None and options.point is None:
        if options.address or options.pairs or options.topology or options.save_every:
            raise ConfigError(
                f"{scenario} is a study of many runs: --topology, --pairs, --address and "
                "--save-every are for one run; name it with --point"
            )
        return _run_study(options, chosen, terminal)
    if options.point is not None:
        chosen = chosen.point(options.point)
    elif options.repeat is not None:
        raise ConfigError(f"--repeat {options.repeat}: it is for a study, and this is one run")
    finished = chosen.run(out=options.out, address=options.address, save_every=options.save_every)
    assert isinstance(finished, Run)
    return _show_run(options, finished, terminal)


def _resume(options: RunOptions, directory: Path, scenario: str | None, terminal: Terminal) -> Run:
    """Go on with a run; raise :exc:`ConfigError` for options that its directory has itself."""
    from joinsim import ConfigError, resume

    besides = ("resume", "address", "watch", "figure", "json_output")
    extra = [
        f"--{one.name.replace('_', '-')}"
        for one in fields(options)
        if one.name not in besides and getattr(options, one.name) != one.default
    ]
    if scenario is not None or extra:
        raise ConfigError(
            f"--resume {directory}: the directory says what runs and how; leave out "
            + ", ".join([*([scenario] if scenario else []), *extra])
        )
    return resume(directory, address=options.address, observer=terminal, wall_clock=CLOCK.get())


def _show_run(options: RunOptions, finished: Run, terminal: Terminal) -> int:
    from scenarios.terminal.views import show_report

    show_report(terminal.out, finished.finished, finished.replay)
    _draw(options, finished, terminal)
    if options.json_output:
        _print_json(finished.summary)
    return exit_code(finished.verdict.passed)


def _run_study(options: RunOptions, chosen: Scenario, terminal: Terminal) -> int:
    from joinsim import StudyRun

    finished = chosen.run(out=options.out)
    assert isinstance(finished, StudyRun)
    return _show_study(options, finished, terminal)


def _show_study(options: QueryOptions, finished: StudyRun, terminal: Terminal) -> int:
    from scenarios.terminal.views import show_findings

    show_findings(terminal.out, finished.result, finished.directory, finished.replay)
    _draw(options, finished, terminal)
    if options.json_output:
        _print_json(finished.summary)
    return worst_exit_code(finished.result.results.values())


@app.command(rich_help_panel=PAPERS, epilog="Example: joinsim reproduce panjoin --scale smoke")
def reproduce(
    paper: Annotated[
        Literal["spo", "pim", "panjoin", "oij", "semijoin"], typer.Argument(help="The paper.")
    ],
    scale: Scale = "laptop",
    out: Annotated[
        Path | None,
        typer.Option(help="Directory to write to; by default runs/reproduce-PAPER/SCALE."),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(help="Run every point with so many seeds; by default as each study says."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run studies again whose results are there.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Run every figure and table of a paper, and judge all that the paper claims of them.

    It goes on where it was interrupted, and leaves one page and one table. The exit code is 1 if a
    claim fails without a reason that is known.
    """
    import joinsim
    from scenarios.terminal.views import show_reproduction

    terminal = _terminal(json_output)
    finished = joinsim.reproduce(
        paper, scale=scale, out=out, repeat=repeat, fresh=fresh, observer=terminal
    )
    show_reproduction(terminal.out, finished.result, finished.directory, finished.replay)
    if json_output:
        _print_json(finished.summary)
    stopped = any(study.stopped for study in finished.result.studies)
    raise Finished(EXIT_STOPPED if stopped else exit_code(finished.passed))


@app.command(
    "report", rich_help_panel=JOINS, epilog="Example: joinsim report RUN_A RUN_B --out runs.html"
)
def report_(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.", metavar="RUN...")],
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("runs.html"),
) -> None:
    """Write one page of several runs side by side, with their curves on the same axes."""
    import joinsim

    typer.echo(joinsim.report(runs, out))


@app.command(rich_help_panel=PAPERS, epilog="Example: joinsim claims --scale smoke --out claims.md")
def claims(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(help="What `joinsim reproduce` made; by default of all papers."),
    ] = None,
    scale: Scale = "laptop",
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("reproduction.md"),
) -> None:
    """Write one table of all papers' claims, from the directories of their reproductions."""
    from actors.whole_files import write_text
    from scenarios.report.claims_document import claims_document, read_reproductions
    from scenarios.run_directory import RUNS
    from scenarios.scenario_files import ConfigError

    chosen = directories or sorted(RUNS.glob(f"reproduce-*/{scale}"))
    if not chosen:
        raise ConfigError(
            f"there is no reproduction at {scale} scale below {RUNS}/: run joinsim reproduce PAPER "
            f"--scale {scale} first, or name its directory"
        )
    records = read_reproductions(chosen)
    write_text(out, claims_document(records))
    papers = ", ".join(record["paper"] for record in records)
    typer.echo(f"{out}: the claims of {papers}")


@app.command(
    rich_help_panel=JOINS,
    epilog="Example: joinsim compare oij-w1 --rows 2000 --topologies kp_oij,dp_oij",
)
@with_options(QueryOptions)
def compare(
    options: QueryOptions,
    what: QueryOrScenario = None,
    topologies: Topologies = None,
    engines: Annotated[
        str | None,
        typer.Option(help="Compare real engines instead, with commas between, or all."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(min=1, help="Seconds after which a real engine is stopped.")
    ] = None,
    backend: Annotated[
        Literal["inline", "ray"] | None, typer.Option(help="Where the actors live.")
    ] = None,
) -> int:
    """Run one join on every system that can evaluate it, or on real engines, and rank them."""
    from joinsim import ConfigError
    from scenarios.terminal.views import show_comparison

    terminal = _terminal(options.json_output)
    chosen = scenario_of(options, what, terminal, {"backend": backend})
    if engines is not None:
        return _compare_engines(options, chosen, engines, split_names(topologies), limit, terminal)
    if limit is not None:
        raise ConfigError(f"--limit {limit:g}: it is for --engines")
    finished = chosen.compare(
        split_names(topologies),
        out=options.out,
        replay_alone=partial(replay_alone, options, what or options.query or ""),
    )
    show_comparison(terminal.out, finished.result, finished.directory, finished.replay)
    _draw(options, finished, terminal)
    if options.json_output:
        _print_json(finished.summary)
    return worst_exit_code(finished.result.results.values())


def _compare_engines(
    options: QueryOptions,
    chosen: Scenario,
    engines: str,
    topologies: list[str],
    limit_s: float | None,
    terminal: Terminal,
) -> int:
    from joinsim import ConfigError
    from scenarios.terminal.views import show_engines

    if len(topologies) > 1:
        raise ConfigError(
            f"--topologies {','.join(topologies)}: engines that run joinsim's operators run one "
            "topology; name one, or leave --engines out to compare topologies"
        )
    if topologies:
        chosen = chosen.with_settings({"topology": topologies[0]})

    def show(so_far: EngineComparison) -> None:
        show_engines(terminal.out, so_far.result, so_far.directory, so_far.replay)

    finished = chosen.compare_engines(engines, limit_s=limit_s, out=options.out, on_result=show)
    _draw(options, finished, terminal)
    if options.json_output:
        _print_json(finished.summary)
    return EXIT_STOPPED if finished.result.failed else exit_code(finished.result.passed)


@app.command(
    rich_help_panel=JOINS,
    epilog="Example: joinsim advise oij-w1 --scale smoke --topologies kp_oij,dp_oij --budget 20s",
)
@with_options(QueryOptions)
def advise(
    options: QueryOptions,
    what: QueryOrScenario = None,
    goal: Annotated[
        str,
        typer.Option(
            help="throughput, latency, bytes or memory; several with commas between: the first "
            "ranks, and the best trade-offs are marked."
        ),
    ] = "throughput",
    rate: Annotated[
        int | None,
        typer.Option(min=1, help="Your own tuples a second; by default that of the event times."),
    ] = None,
    machines: Annotated[int, typer.Option(min=1, help="At most so many do the join's work.")] = 8,
    budget: Annotated[str, typer.Option(help="Real time that it may take.")] = "60s",
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Of a core_hour, a machine_hour or a gigabyte."),
    ] = None,
    topologies: Topologies = None,
    engines: Annotated[
        str,
        typer.Option(help="Real engines to run in what time is left, all, or empty for none."),
    ] = "duckdb,polars",
    seeds: Annotated[
        int, typer.Option(min=1, max=100, help="Run the best with so many, for 95 % intervals.")
    ] = 3,
) -> int:
    """Find the topology that is best for a query and its data, and say why."""
    from joins.queries.windows import WindowError, read_extent
    from joinsim import ConfigError
    from scenarios.terminal.views import show_advice

    try:
        kind, size = read_extent(budget)
        if kind != "time":
            raise ValueError
        prices = {name: float(value) for name, value in parse_settings(price or []).items()}
    except (WindowError, TypeError, ValueError):
        raise ConfigError(
            f"--budget {budget} --price {' '.join(price or []) or 'none'}: write a budget as 60s "
            "or '2 min', and a price as core_hour=0.05"
        ) from None
    terminal = _terminal(options.json_output)
    chosen = scenario_of(options, what, terminal, {"feeding.rate_tps": rate})
    advised = chosen.advise(
        goals=split_names(goal),
        machines=machines,
        topologies=split_names(topologies),
        engines=engines,
        budget_s=size / 1e9,
        seeds=seeds,
        prices=prices,
        out=options.out,
    )
    show_advice(terminal.out, advised.result, advised.directory, advised.replay)
    if options.json_output:
        _print_json(advised.summary)
    return EXIT_PASS


@app.command(
    rich_help_panel=JOINS, epilog="Example: joinsim sweep oij-w1 --scale smoke --over pes=1,2,4"
)
@with_options(QueryOptions)
def sweep(
    options: QueryOptions,
    what: QueryOrScenario = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            help="A parameter and its values: KEY=A,B,C or KEY=FIRST..LAST:log:5. KEY is a key as "
            "for --set, or rate_tps, latency, bandwidth, pes, window, skew, topology. The first "
            "runs along x, the second from line to line."
        ),
    ] = None,
    find: Annotated[
        Literal["sustainable"] | None,
        typer.Option(help="Find at each point the highest rate at which queues do not grow."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=100, help="Run every point with so many, for 95 % intervals.")
    ] = 1,
    measure: Annotated[
        str | None,
        typer.Option(help="What is measured, with commas between, as throughput_tps,result_ms.p99"),
    ] = None,
    topology: Annotated[str | None, typer.Option(help="The system to run it on.")] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Points at once; by default one for each core.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run points again whose results are there.")
    ] = False,
) -> int:
    """Run one join over ranges of its parameters; what an earlier sweep ran is not run again."""
    from scenarios.sweep import Range

    terminal = _terminal(options.json_output)
    chosen = scenario_of(options, what, terminal, {"topology": topology})
    swept = chosen.sweep(
        [Range.read(text) for text in over or []],
        seeds=seeds,
        measures=split_names(measure),
        find=find,
        processes=processes,
        fresh=fresh,
        out=options.out,
    )
    return _show_study(options, swept, terminal)


@app.command(
    rich_help_panel=JOINS, epilog="Example: joinsim plan semijoin-fig10 --scale smoke --no-simulate"
)
@with_options(QueryOptions)
def plan(
    options: QueryOptions,
    scenario: ScenarioName = None,
    topology: Annotated[
        str | None,
        typer.Option(help="The system to plan for.", autocompletion=complete_topology),
    ] = None,
    simulate: Annotated[
        bool, typer.Option(help="Run the plan, and print its costs beside the estimated ones.")
    ] = True,
) -> int:
    """Explain how a system will go about a join, and what that should cost."""
    from scenarios.terminal.views import show_proposal, show_report

    terminal = _terminal(options.json_output)
    chosen = scenario_of(options, scenario, terminal, {"topology": topology})
    proposal, finished = chosen.plan(simulate=simulate, out=options.out)
    if finished is not None:
        show_report(terminal.out, finished.finished, finished.replay)
        _draw(options, finished, terminal)
    show_proposal(terminal.out, proposal)
    if options.json_output:
        _print_json(proposal.as_json())
    return EXIT_PASS if finished is None else exit_code(finished.verdict.passed)


@app.command(
    rich_help_panel=SYSTEMS,
    epilog="Example: joinsim calibrate --no-live --passes 0 --out calibrated.toml",
)
def calibrate(
    live: Annotated[
        bool,
        typer.Option(help="Also run every system on Ray, for what messages and operators cost."),
    ] = True,
    validate: Annotated[
        bool, typer.Option("--validate", help="Compare what it predicts with live runs on Ray.")
    ] = False,
    profile: Annotated[
        Path | None, typer.Option(help="Take this cost profile instead of measuring one.")
    ] = None,
    topologies: Topologies = None,
    rows: Annotated[int, typer.Option(min=1_000, help="Tuples of each stream.")] = 20_000,
    processes: Annotated[int, typer.Option(min=1, help="Ray processes of live runs.")] = 2,
    passes: Annotated[
        int,
        typer.Option(min=0, help="Measure each structure so often; 0: take the default prices."),
    ] = 2,
    out: Annotated[Path, typer.Option(help="TOML file to write the profile to.")] = Path(
        "calibrated.toml"
    ),
    json_output: Json = False,
) -> None:
    """Measure on this machine what work costs, for runs in virtual time."""
    import joinsim
    from scenarios.terminal.views import (
        show_operators,
        show_predictions,
        show_profile,
        show_structures,
    )

    terminal = _terminal(json_output)
    calibration = joinsim.calibrate(
        out,
        live=live,
        validate=validate,
        profile=profile,
        topologies=split_names(topologies),
        rows=rows,
        processes=processes,
        passes=passes,
        observer=terminal,
    )
    if calibration.operators is not None:
        if calibration.operators.transport is not None:
            show_operators(terminal.out, calibration.operators)
        show_structures(terminal.out, calibration.operators.base)
    show_profile(terminal.out, calibration.profile, calibration.path)
    if validate:
        show_predictions(terminal.out, calibration.predictions)
    if json_output:
        _print_json(calibration.summary)
    raise Finished(EXIT_PASS if calibration.exact else EXIT_FAIL)


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim show split_join --set pes=3")
def show(
    topology: Annotated[
        str,
        typer.Argument(
            help="A topology's name (see `joinsim list`).", autocompletion=complete_topology
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the topology."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Draw it into a file: .svg, .png or .pdf.")
    ] = None,
) -> None:
    """Show who sends to whom in a topology, and what can be set of it."""
    import joinsim
    from joinsim._catalog import draw
    from scenarios.terminal.views import show_topology
    from topologies import find_topology

    terminal = _terminal(False)
    parameters = parse_settings(settings or [])
    if out:
        terminal.out.print(f"wrote {draw(topology, out, **parameters)}")
    else:
        graph = joinsim.show(topology, **parameters)
        show_topology(terminal.out, find_topology(topology), graph)


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim fuzz --worlds 1000 --seed 7")
def fuzz(
    worlds: Annotated[int, typer.Option(help="How many to run.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the worlds drawn.")] = 1,
    topology: Annotated[
        list[str] | None, typer.Option(help="A system to run, of several too; by default all.")
    ] = None,
    processes: Annotated[int, typer.Option(help="Processes to share the work among.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Directory for failing worlds; by default runs/fuzz.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Run worlds drawn at random, judge each, and make small what fails.

    A world is a query, tuples, a system, a network and an order of arrival. The exit code is 1 if
    one fails.
    """
    import joinsim
    from scenarios.terminal.worlds import show_fuzzed

    terminal = _terminal(json_output)
    fuzzed = joinsim.fuzz(
        worlds,
        seed=seed,
        topologies=topology or [],
        processes=processes,
        out=out,
        observer=terminal,
    )
    show_fuzzed(terminal.out, fuzzed, CLOCK.get().since_lap_s)
    if json_output:
        _print_json(fuzzed.summary)
    raise Finished(EXIT_FAIL if fuzzed.failures else EXIT_PASS)


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim replay runs/fuzz/world-7.json")
def replay(
    file: Annotated[Path, typer.Argument(help="What `joinsim fuzz` wrote of a failing world.")],
    json_output: Json = False,
) -> None:
    """Run the world in a file again.

    The exit code is 1 if it fails, or if its run is another one than when the file was written.
    """
    import joinsim
    from scenarios.terminal.worlds import show_replayed

    terminal = _terminal(json_output)
    replayed = joinsim.replay(file)
    show_replayed(terminal.out, replayed.trial, replayed.recording, same=replayed.same)
    if json_output:
        _print_json(replayed.summary)
    failed = replayed.trial.failure is not None or replayed.same is False
    raise Finished(EXIT_FAIL if failed else EXIT_PASS)


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim diff runs/first runs/second")
def diff(
    run_a: Annotated[Path, typer.Argument(help="A directory that a run has written.")],
    run_b: Annotated[Path, typer.Argument(help="Another.")],
    json_output: Json = False,
) -> None:
    """Find the first message in which two runs differ; the exit code is 1 if there is one."""
    import joinsim
    from scenarios.terminal.difference import show_difference

    terminal = _terminal(json_output)
    found = joinsim.diff(run_a, run_b)
    show_difference(terminal.out, found)
    if json_output:
        rows = [table.to_pylist() for table in found.rows]
        _print_json(
            {
                "same": found.same,
                "row": found.row,
                "columns": list(found.columns),
                "first": found.first,
                "rows": dict(zip("ab", rows, strict=True)),
                "settings": {key: values for key, *values in found.settings},
            }
        )
    raise Finished(EXIT_PASS if found.same else EXIT_FAIL)


@data_app.command(
    epilog="Example: joinsim data prepare trips.csv --time pickup --field distance --out prepared"
)
def prepare(
    files: Annotated[list[Path], typer.Argument(help="Raw CSV or Parquet files of one stream.")],
    name: Annotated[str | None, typer.Option(help="The stream's name.")] = None,
    time: Annotated[str | None, typer.Option(help="Column or SQL expression: event time.")] = None,
    arrival: Annotated[
        str | None,
        typer.Option(help="Order of arrival: a column of times, or rows: the files' own order."),
    ] = None,
    fields: Annotated[
        list[str] | None, typer.Option("--field", help="A join field: must be valid in every row.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="SQL condition on the rows to take.")] = None,
    rows: Annotated[int | None, typer.Option(help="Take the first so many in time.")] = None,
    out: Annotated[Path, typer.Option(help="Directory to put the stream in.")] = Path("prepared"),
    json_output: Json = False,
) -> None:
    """Turn raw files into a typed, validated, ordered, numbered stream."""
    import joinsim
    from scenarios.terminal.views import show_prepared

    terminal = _terminal(json_output)
    with terminal.preparing() as progress:
        stream = joinsim.prepare(
            files,
            name=name,
            time=time,
            arrival=arrival,
            fields=fields or [],
            where=where,
            rows=rows,
            out=out,
            progress=progress,
        )
    show_prepared(terminal.out, stream)
    if json_output:
        _print_json(
            {
                "name": stream.name,
                "path": str(stream.path),
                "rows": stream.rows,
                "rejected": stream.rejected,
                "notes": list(stream.notes),
            }
        )


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim schema --out joinsim.schema.json")
def schema(
    out: Annotated[
        Path | None, typer.Option(help="File to write; by default it is printed.")
    ] = None,
) -> None:
    """Print the JSON schema of scenario files, by which editors complete and check TOML.

    In the first line of a TOML file, "#:schema joinsim.schema.json" names it.
    """
    from actors.whole_files import write_text
    from scenarios.json_schema import scenario_schema

    text = json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"
    if out is None:
        print(text, end="")
        return
    write_text(out, text)
    typer.echo(f"wrote {out}")


@new_app.command(epilog="Example: joinsim new topology my_join")
def topology(
    name: Annotated[str, typer.Argument(help="Its name, in lower case: my_join.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; by default one of that name.")
    ] = None,
) -> None:
    """Write a package with a topology of your own: nested loops that work, a test, an entry point.

    Change the joiner and the routing from there; the test says whether the answer is still right.
    """
    from joinsim._starter import write_topology

    folder = write_topology(name, out)[0].parent
    typer.echo(
        f"wrote {folder}: {name}.py, test_{name}.py, pyproject.toml\n"
        f"  try it:      pip install --editable {folder} && joinsim run spo-q1 --topology {name}\n"
        f"  check it:    pytest {folder}"
    )


def _terminal(json_output: bool, *, watch: bool = False) -> Terminal:
    from joins.machine.imports import leave_out_pandas
    from joins.machine.memory import keep_freed_memory

    leave_out_pandas()
    keep_freed_memory()
    from scenarios.terminal.progress import Terminal

    return Terminal(quiet=json_output, watch=watch)


def _draw(options: QueryOptions, finished: Any, terminal: Terminal) -> None:
    """Draw what ran into the file that was asked for, if any."""
    if options.figure is not None:
        path = finished.figure(options.figure)
        terminal.out.print(f"{path}, with its data in {path.with_suffix('.csv').name}")


def _print_json(value: dict[str, Any]) -> None:
    """Print *value* as the one JSON object on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
