"""Commands that run a join: one run, and those that compare, advise, sweep and plan."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from joinsim.cli.command_line import (
    CLOCK,
    EXIT_FAIL,
    EXIT_PASS,
    EXIT_STOPPED,
    JOINS,
    app,
    complete_topology,
    exit_code,
    open_terminal,
    print_json,
    worst,
    worst_exit_code,
)
from joinsim.cli.options import (
    Backend,
    Json,
    QueryOptions,
    QueryOrScenario,
    RunOptions,
    ScenarioName,
    Topologies,
    check_figure,
    open_scenario,
    parse_settings,
    split_names,
    with_options,
)

if TYPE_CHECKING:
    from joinsim._outcomes import EngineComparison, Run, StudyRun
    from joinsim._scenario import Scenario
    from scenarios.terminal.progress import Terminal
    from spark_bridge.prepared import PreparedStream

DEMO_SCENARIO = "spo-q3"
_EXTRAS = {"spark": "pyspark", "ray": "ray"}
"""The extras that the demo uses, and the package that each installs."""


@app.command(rich_help_panel=JOINS, epilog="Example: joinsim demo")
def demo(json_output: Json = False) -> int:
    """Prepare real taxi trips with Spark, join them on Ray and inline, and compare.

    Without Spark they are read as a table, and without Ray they are joined inline alone.
    """
    from joinsim import Run
    from joinsim._scenario import Scenario
    from scenarios.terminal.views import show_backends, show_run

    terminal = open_terminal(quiet=json_output)
    absent = [name for name in _EXTRAS if find_spec(_EXTRAS[name]) is None]
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
            streams=None if "spark" in absent else _prepare_by_spark(terminal),
        )
        run = chosen.run(backend=backend)
        assert isinstance(run, Run)  # the scenario is no study
        show_run(terminal.out, run.finished, run.replay)
        runs.append(run)
    equal = len({run.digest for run in runs}) == 1
    if len(runs) > 1:
        show_backends(terminal.out, [run.finished for run in runs], equal=equal)
    if json_output:
        print_json({"runs": [run.summary for run in runs], "digests_equal": equal})
    return worst([exit_code(run.verdict.passed) for run in runs] + [EXIT_FAIL] * (not equal))


def _prepare_by_spark(terminal: Terminal) -> tuple[PreparedStream, ...]:
    """Return the demo's streams, which a run would read without Spark."""
    from joins.queries.parser import parse_query
    from joinsim._scenario import Scenario
    from scenarios.observer import COMPILING
    from scenarios.preparation import prepare_by_spark
    from scenarios.rehearsal import rehearsing_ahead

    config = Scenario(DEMO_SCENARIO).config
    query = parse_query(config.query)
    with (
        rehearsing_ahead(config, partial(terminal.note, COMPILING)) as rehearse,
        terminal.preparing() as progress,
    ):
        return prepare_by_spark(config, query, progress=progress, on_spark=rehearse)


@app.command(
    rich_help_panel=JOINS,
    epilog="Example: joinsim run oij-w1 --rows 2000 --set feeding.rate_tps=50000",
)
@with_options(RunOptions)
def run(options: RunOptions, scenario: ScenarioName = None) -> int:
    """Run one join and judge the answer, or a study of many."""
    from joinsim import ConfigError, Run

    if options.resume is not None:
        terminal = open_terminal(quiet=options.json_output, watch=options.watch)
        return _show_run(options, _resume(options, options.resume, scenario, terminal), terminal)
    chosen, terminal = open_scenario(options, scenario)
    if options.point is not None:
        chosen = chosen.point(options.point)
    elif chosen.study is not None:
        if options.address or options.pairs or options.topology or options.save_every:
            raise ConfigError(
                f"{scenario} is a study of many runs: --topology, --pairs, --address and "
                "--save-every are for one run; name it with --point"
            )
    elif options.repeat is not None:
        raise ConfigError(f"--repeat {options.repeat}: it is for a study, and this is one run")
    finished = chosen.run(out=options.out, address=options.address, save_every=options.save_every)
    if isinstance(finished, Run):
        return _show_run(options, finished, terminal)
    return _show_study(options, finished, terminal)


def _resume(options: RunOptions, directory: Path, scenario: str | None, terminal: Terminal) -> Run:
    """Go on with a run; raise :exc:`ConfigError` for options that its directory has itself."""
    from joinsim import ConfigError, resume

    check_figure(options)
    besides = ("resume", "address", "watch", "figure", "json_output")
    extra = [
        "--set" if one.name == "settings" else f"--{one.name.replace('_', '-')}"
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
    from scenarios.terminal.views import show_run

    show_run(terminal.out, finished.finished, finished.replay)
    _write_out(options, finished, terminal)
    return exit_code(finished.verdict.passed)


def _write_out(options: QueryOptions, finished: Any, terminal: Terminal) -> None:
    """Draw what has *finished* into a file, and print it as JSON, where *options* ask for it."""
    _draw_figure(options.figure, finished, terminal)
    if options.json_output:
        print_json(finished.summary)


def _draw_figure(figure: Path | None, finished: Any, terminal: Terminal) -> None:
    """Draw what ran into the file *figure*; None draws nothing."""
    if figure is not None:
        from scenarios.report.picture import figure_data

        path = finished.figure(figure)
        terminal.out.print(f"{path}, with its data in {figure_data(path).name}")


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
    backend: Backend = None,
) -> int:
    """Run one join on every system that can evaluate it, or on real engines, and rank them."""
    from joinsim import ConfigError
    from scenarios.terminal.views import show_comparison

    chosen, terminal = open_scenario(options, what, {"backend": backend})
    if engines is not None:
        if backend is not None:
            raise ConfigError(f"--backend {backend}: with --engines, inline and ray are engines")
        return _compare_engines(options, chosen, engines, split_names(topologies), limit, terminal)
    if limit is not None:
        raise ConfigError(f"--limit {limit:g}: it is for --engines")
    finished = chosen.compare(split_names(topologies), out=options.out)
    show_comparison(terminal.out, finished.result, finished.directory, finished.replay)
    _write_out(options, finished, terminal)
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
    _write_out(options, finished, terminal)
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
    machines: Annotated[int, typer.Option(min=1, help="The most that may do the join's work.")] = 8,
    budget: Annotated[str, typer.Option(help="Real time that it may take.")] = "60s",
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Price of a core_hour, a machine_hour or a gigabyte."
        ),
    ] = None,
    topologies: Topologies = None,
    engines: Annotated[
        str,
        typer.Option(help="Real engines to run in what time is left, all, or empty for none."),
    ] = "duckdb,polars",
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=100, help="How many the best systems run with, for 95 % intervals."
        ),
    ] = 3,
) -> int:
    """Find the topology that is best for a query and its data, and say why."""
    from joins.queries.windows import ExtentError, read_extent
    from joinsim import ConfigError
    from scenarios.terminal.views import show_advice

    try:
        kind, size = read_extent(budget)
    except ExtentError:
        kind, size = "", 0
    if kind != "time":
        raise ConfigError(f"--budget {budget}: write it as 60s or '2 min'")
    try:
        prices = {name: float(value) for name, value in parse_settings(price or []).items()}
    except (TypeError, ValueError):
        raise ConfigError(f"--price {' '.join(price or [])}: write it as core_hour=0.05") from None
    chosen, terminal = open_scenario(options, what, {"feeding.rate_tps": rate})
    advised = chosen.advise(
        goal=split_names(goal),
        machines=machines,
        topologies=split_names(topologies),
        engines=engines,
        budget_s=size / 1e9,
        seeds=seeds,
        prices=prices,
        out=options.out,
    )
    show_advice(terminal.out, advised.result, advised.directory, advised.replay)
    _write_out(options, advised, terminal)
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
        int,
        typer.Option(min=1, max=100, help="How many every point runs with, for 95 % intervals."),
    ] = 1,
    measure: Annotated[
        str | None,
        typer.Option(help="What is measured, with commas between, as throughput_tps,result_ms.p99"),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(help="The system to run it on.", autocompletion=complete_topology),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Points at once; by default one for each core.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run points again whose results are there.")
    ] = False,
) -> int:
    """Run one join over ranges of its parameters; what an earlier sweep ran is not run again."""
    chosen, terminal = open_scenario(options, what, {"topology": topology})
    swept = chosen.sweep(
        over or [],
        seeds=seeds,
        measures=split_names(measure),
        find=find,
        processes=processes,
        fresh=fresh,
        out=options.out,
    )
    return _show_study(options, swept, terminal)


def _show_study(options: QueryOptions, finished: StudyRun, terminal: Terminal) -> int:
    from scenarios.terminal.views import show_findings

    show_findings(terminal.out, finished.result, finished.directory, finished.replay)
    _write_out(options, finished, terminal)
    return worst_exit_code(finished.result.results.values())


@app.command(
    rich_help_panel=JOINS, epilog="Example: joinsim plan semijoin-trees --scale smoke --no-simulate"
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
    """Print the plan of a system that plans its join (semijoin, ibwj), and its estimated costs."""
    from joinsim import ConfigError
    from scenarios.terminal.views import show_proposal, show_run

    if options.figure is not None and not simulate:
        raise ConfigError(f"--figure {options.figure}: it draws the run; leave out --no-simulate")
    chosen, terminal = open_scenario(options, scenario, {"topology": topology})
    proposal, finished = chosen.plan(simulate=simulate, out=options.out)
    if finished is not None:
        show_run(terminal.out, finished.finished, finished.replay)
        _draw_figure(options.figure, finished, terminal)
    show_proposal(terminal.out, proposal)
    if options.json_output:
        print_json(proposal.as_json())
    return EXIT_PASS if finished is None else exit_code(finished.verdict.passed)
