"""The command line: ``joinsim demo | list | run | compare | plan | calibrate | show | data``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from joins.machine.memory import keep_freed_memory
from scenarios.commands import calibrate as calibrate_command
from scenarios.commands import catalog
from scenarios.commands import compare as compare_command
from scenarios.commands import compare_engines as compare_engines_command
from scenarios.commands import data as data_commands
from scenarios.commands import plan as plan_command
from scenarios.commands import run as run_command
from scenarios.commands.arguments import (
    Backend,
    Clock,
    Data,
    Json,
    Out,
    Query,
    Rows,
    Scale,
    Scenario,
    Seed,
    Settings,
    Time,
    Topologies,
)
from scenarios.commands.data import DataOptions
from scenarios.commands.options import RunOptions
from scenarios.failures import EXIT_STOPPED, guarded
from scenarios.scenario_files import ConfigError

app = typer.Typer(
    name="joinsim",
    help="A laboratory for distributed stream joins.\n\n"
    "Exit codes: 0 the verdict is pass, 1 fail, 2 unknown (nothing was tested), "
    "3 no verdict (bad input or a crash).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(help="Raw files in, prepared streams out.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.command()
def demo(json_output: Json = False) -> None:
    """Prepare real taxi trips with Spark, join them on Ray and inline, and compare."""
    raise _Finished(run_command.demo(json_output=json_output))


@app.command("list")
def list_(json_output: Json = False) -> None:
    """List the scenarios and the topologies."""
    catalog.list_all(json_output=json_output)


@app.command()
def run(
    scenario: Scenario = None,
    query: Query = None,
    data: Data = None,
    topology: Annotated[str | None, typer.Option(help="The system to run it on.")] = None,
    settings: Settings = None,
    rows: Rows = None,
    time: Time = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Write every pair found.")] = False,
    out: Out = None,
    seed: Seed = None,
    backend: Backend = None,
    clock: Clock = None,
    processes: Annotated[int | None, typer.Option(help="Ray processes to pack them into.")] = None,
    address: Annotated[str | None, typer.Option(help="A running Ray cluster.")] = None,
    scale: Scale = "laptop",
    point: Annotated[
        int | None, typer.Option(help="Of a study, run this point alone, by its number.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Run one join and judge the answer, or a study of many."""
    options = RunOptions(
        scenario=scenario,
        query=query,
        data=data or [],
        topology=topology,
        settings=settings or [],
        rows=rows,
        time=time,
        pairs=pairs,
        out=out,
        seed=seed,
        backend=backend,
        clock=clock,
        processes=processes,
        address=address,
        scale=scale,
        point=point,
        json_output=json_output,
    )
    raise _Finished(run_command.run(options))


@app.command()
def compare(
    what: Annotated[
        str, typer.Argument(help="A query, as SQL, or a scenario's name, or a TOML file.")
    ],
    data: Data = None,
    topologies: Topologies = None,
    engines: Annotated[
        str | None,
        typer.Option(help="Compare real engines instead, with commas between, or all."),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(min=1, help="Seconds after which a real engine is stopped.")
    ] = None,
    settings: Settings = None,
    rows: Rows = None,
    time: Time = None,
    out: Out = None,
    seed: Seed = None,
    backend: Backend = None,
    scale: Scale = "laptop",
    json_output: Json = False,
) -> None:
    """Run one join on every system that can evaluate it, or on real engines, and rank them."""
    is_query = " " in what.strip()
    options = RunOptions(
        scenario=None if is_query else what,
        query=what if is_query else None,
        data=data or [],
        settings=settings or [],
        rows=rows,
        time=time,
        out=out,
        seed=seed,
        backend=backend,
        scale=scale,
        json_output=json_output,
    )
    names = _names(topologies)
    if engines is not None:
        raise _Finished(compare_engines_command.compare(options, engines, names, limit_s=limit))
    if limit is not None:
        raise ConfigError(f"--limit {limit:g}: it is for --engines")
    raise _Finished(compare_command.compare(options, names))


@app.command()
def plan(
    scenario: Scenario = None,
    query: Query = None,
    data: Data = None,
    topology: Annotated[str | None, typer.Option(help="The system to plan for.")] = None,
    settings: Settings = None,
    rows: Rows = None,
    time: Time = None,
    simulate: Annotated[
        bool, typer.Option(help="Run the plan, and tell its costs beside the estimated ones.")
    ] = True,
    out: Out = None,
    seed: Seed = None,
    scale: Scale = "laptop",
    json_output: Json = False,
) -> None:
    """Explain how a system will go about a join, and what that should cost."""
    options = RunOptions(
        scenario=scenario,
        query=query,
        data=data or [],
        topology=topology,
        settings=settings or [],
        rows=rows,
        time=time,
        out=out,
        seed=seed,
        scale=scale,
        json_output=json_output,
    )
    raise _Finished(plan_command.plan(options, simulate=simulate))


@app.command()
def calibrate(
    validate: Annotated[
        bool, typer.Option("--validate", help="Compare what it predicts with live runs on Ray.")
    ] = False,
    profile: Annotated[
        Path | None, typer.Option(help="Take this cost profile instead of measuring one.")
    ] = None,
    topologies: Topologies = None,
    rows: Annotated[int, typer.Option(min=1_000, help="Tuples of each stream.")] = 20_000,
    processes: Annotated[int, typer.Option(min=1, help="Ray processes of live runs.")] = 2,
    out: Annotated[Path, typer.Option(help="TOML file to write the profile to.")] = Path(
        "calibrated.toml"
    ),
    json_output: Json = False,
) -> None:
    """Measure on this machine what work costs, for runs in virtual time."""
    code = calibrate_command.calibrate(
        rows=rows,
        out=out,
        check=validate,
        profile=profile,
        topologies=_names(topologies),
        processes=processes,
        json_output=json_output,
    )
    raise _Finished(code)


@app.command()
def show(
    topology: Annotated[str, typer.Argument(help="A topology's name (see `joinsim list`).")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the topology."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Draw it into a file: .svg, .png or .pdf.")
    ] = None,
) -> None:
    """Show who talks to whom in a topology, and what may be set of it."""
    catalog.show(topology, settings or [], out)


@data_app.command()
def prepare(
    files: Annotated[list[Path], typer.Argument(help="Raw CSV or Parquet files of one stream.")],
    name: Annotated[str | None, typer.Option(help="The stream's name.")] = None,
    time: Annotated[str | None, typer.Option(help="Column or SQL expression: event time.")] = None,
    fields: Annotated[
        list[str] | None, typer.Option("--field", help="A join field: must be valid in every row.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="SQL condition on the rows to take.")] = None,
    rows: Annotated[int | None, typer.Option(help="Take the first so many in time.")] = None,
    out: Annotated[Path, typer.Option(help="Directory to put the stream in.")] = Path("prepared"),
    json_output: Json = False,
) -> None:
    """Turn raw files into a typed, validated, ordered, numbered stream."""
    data_commands.prepare(
        DataOptions(
            files=files,
            name=name,
            time=time,
            fields=fields or [],
            where=where,
            rows=rows,
            out=out,
            json_output=json_output,
        )
    )


def _names(listed: str | None) -> list[str]:
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


_INTERRUPTED = 130  # the parser's code for Ctrl-C, of which it says nothing


class _Finished(Exception):  # noqa: N818  (nothing went wrong)
    """A command is done and says with which exit code."""

    def __init__(self, code: int) -> None:
        self.code = code


def main() -> None:
    """Run the command line; every failure is one message and an exit code."""
    with guarded():
        keep_freed_memory()
        try:
            app()
        except _Finished as finished:
            sys.exit(finished.code)
        except SystemExit as stopped:
            if stopped.code == _INTERRUPTED:
                raise KeyboardInterrupt from None
            # The parser's own code for a wrong option is 2, which means something else here.
            sys.exit(EXIT_STOPPED if stopped.code else 0)
