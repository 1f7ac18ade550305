"""Commands for what joins are made of: systems, data, this machine, and worlds that test them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from joinsim.cli.command_line import (
    CLOCK,
    EXIT_FAIL,
    EXIT_PASS,
    SYSTEMS,
    Grouped,
    app,
    complete_topology,
    open_terminal,
    print_json,
)
from joinsim.cli.options import Json, Topologies, parse_settings, split_names

data_app = typer.Typer(
    help="Raw files in, prepared streams out.", no_args_is_help=True, cls=Grouped
)
app.add_typer(data_app, name="data", rich_help_panel=SYSTEMS)
new_app = typer.Typer(
    help="Write a first version of something of your own.", no_args_is_help=True, cls=Grouped
)
app.add_typer(new_app, name="new", rich_help_panel=SYSTEMS)


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
    """Show who sends to whom in a topology, and its parameters."""
    import joinsim
    from scenarios.plan import make_parameters
    from scenarios.scenario_files import ConfigError, catalog
    from scenarios.terminal.views import show_topology
    from topologies import find_topology

    if topology in catalog():
        raise ConfigError(f"{topology} is a scenario: joinsim run {topology} runs it")
    terminal = open_terminal(quiet=False)
    parameters = parse_settings(settings or [])
    # Before they are passed as arguments, beside others of which one may have the same name.
    own = {name: value for name, value in parameters.items() if name != "sink"}
    make_parameters(find_topology(topology), own)
    if out:
        terminal.out.print(f"wrote {joinsim.draw(topology, out, **parameters)}")
    else:
        graph = joinsim.show(topology, **parameters)
        show_topology(terminal.out, find_topology(topology), graph)


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
    import joinsim

    folder = joinsim.new_topology(name, out)[0].parent
    place = shlex.quote(str(folder))
    typer.echo(
        f"wrote {folder}: src/{name}.py, test_{name}.py, pyproject.toml\n"
        f"  try it:      pip install --editable {place} && joinsim run spo-q1 --topology {name}\n"
        f"  check it:    pytest {place}"
    )


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
        typer.Option(
            min=0, help="How often each structure is measured; 0 takes the default prices."
        ),
    ] = 1,
    out: Annotated[Path, typer.Option(help="TOML file to write the profile to.")] = Path(
        "calibrated.toml"
    ),
    json_output: Json = False,
) -> int:
    """Measure on this machine what work costs, for runs in virtual time."""
    import joinsim
    from scenarios.terminal.views import (
        show_operators,
        show_predictions,
        show_profile,
        show_structures,
    )

    terminal = open_terminal(quiet=json_output)
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
        print_json(calibration.summary)
    return EXIT_PASS if calibration.exact else EXIT_FAIL


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim fuzz --worlds 1000 --seed 7")
def fuzz(
    worlds: Annotated[int, typer.Option(help="How many to run.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed that worlds are drawn from.")] = 1,
    topology: Annotated[
        list[str] | None,
        typer.Option(
            help="A system to run; repeat for several; by default all.",
            autocompletion=complete_topology,
        ),
    ] = None,
    processes: Annotated[int, typer.Option(help="Processes to share the work among.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Directory for failing worlds; by default runs/fuzz.")
    ] = None,
    json_output: Json = False,
) -> int:
    """Run small joins drawn at random (worlds), judge each, and shrink those that fail.

    A world is a query, tuples, a system, a network, an order of arrival, faults and crashes. The
    exit code is 1 if one fails.
    """
    import joinsim
    from scenarios.terminal.views import show_fuzzed

    terminal = open_terminal(quiet=json_output)
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
        print_json(fuzzed.summary)
    return EXIT_FAIL if fuzzed.failures else EXIT_PASS


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim replay runs/fuzz/world-7.json")
def replay(
    file: Annotated[Path, typer.Argument(help="What `joinsim fuzz` wrote of a failing world.")],
    json_output: Json = False,
) -> int:
    """Run the world in a file again.

    The exit code is 1 if it fails, or if its trace differs from the one recorded in the file.
    """
    import joinsim
    from scenarios.terminal.views import show_replayed

    terminal = open_terminal(quiet=json_output)
    replayed = joinsim.replay(file)
    show_replayed(terminal.out, replayed)
    if json_output:
        print_json(replayed.summary)
    failed = replayed.trial.failure is not None or replayed.same is False
    return EXIT_FAIL if failed else EXIT_PASS


@app.command(rich_help_panel=SYSTEMS, epilog="Example: joinsim diff runs/first runs/second")
def diff(
    run_a: Annotated[Path, typer.Argument(help="A directory that a run has written.")],
    run_b: Annotated[Path, typer.Argument(help="Another.")],
    json_output: Json = False,
) -> int:
    """Find the first message in which two runs differ; the exit code is 1 if there is one."""
    import joinsim
    from scenarios.terminal.views import show_difference

    terminal = open_terminal(quiet=json_output)
    found = joinsim.diff(run_a, run_b)
    show_difference(terminal.out, found)
    if json_output:
        rows = [table.to_pylist() for table in found.rows]
        print_json(
            {
                "same": found.same,
                "row": found.row,
                "columns": list(found.columns),
                "first": found.first,
                "rows": dict(zip("ab", rows, strict=True)),
                "settings": {key: values for key, *values in found.settings},
            }
        )
    return EXIT_PASS if found.same else EXIT_FAIL


@data_app.command(
    epilog="Example: joinsim data prepare trips.csv --time pickup --field distance --out prepared"
)
def prepare(
    files: Annotated[list[Path], typer.Argument(help="Raw CSV or Parquet files of one stream.")],
    name: Annotated[str | None, typer.Option(help="The stream's name.")] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="Event time: a column, an SQL expression, or rows: the files' own order."
        ),
    ] = None,
    arrival: Annotated[
        str | None,
        typer.Option(help="Order of arrival: a column of times, or rows: the files' own order."),
    ] = None,
    fields: Annotated[
        list[str] | None, typer.Option("--field", help="A join field: must be valid in every row.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="SQL condition on the rows to take.")] = None,
    rows: Annotated[
        int | None, typer.Option(help="Take only this many, the first in time.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory to put the stream in.")] = Path("prepared"),
    json_output: Json = False,
) -> None:
    """Turn raw files into a typed, validated, ordered, numbered stream."""
    import joinsim
    from scenarios.terminal.views import show_prepared

    terminal = open_terminal(quiet=json_output)
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
        print_json(
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
    import joinsim
    from actors.whole_files import write_text
    from scenarios.formatting import json_text

    if out is None:
        print_json(joinsim.schema())
        return
    write_text(out, json_text(joinsim.schema()))
    typer.echo(f"wrote {out}")
