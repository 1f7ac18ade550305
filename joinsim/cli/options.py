"""The options that commands share, and the scenario that they describe.

Options are fields of `QueryOptions` and `RunOptions`; `with_options` makes them a command's own.
Nothing heavy but typer is imported before a command runs.
"""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from joinsim.cli.command_line import CLOCK, complete_scenario, complete_topology, open_terminal

if TYPE_CHECKING:
    from joinsim._scenario import Scenario
    from scenarios.config import RunConfig
    from scenarios.terminal.progress import Terminal

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


Scale = Annotated[
    Literal["smoke", "laptop", "paper"], typer.Option(help="How large scenarios are run.")
]


Topologies = Annotated[
    str | None, typer.Option(help="Systems to run, with commas between; by default all.")
]
Backend = Annotated[Literal["inline", "ray"] | None, typer.Option(help="Where the actors live.")]


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What to run: a scenario, or a query and its data; None stands for what the scenario says."""

    query: Annotated[str | None, typer.Option(help="The join, as SQL; instead of a scenario.")] = (
        None
    )
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="[STREAM=]FILE",
            help="Raw CSV or Parquet, or a prepared stream; one per stream, in the query's order "
            "or by name.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the topology, or a scenario's key, as in network.preset=wan.",
        ),
    ] = None
    rows: Annotated[int | None, typer.Option(help="Tuples taken of each stream, at most.")] = None
    time: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STREAM=]COLUMN",
            help="Event time: a column, of every stream or of one, as in orders=placed_at; or "
            "rows: the file's own order.",
        ),
    ] = None
    arrival: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STREAM=]COLUMN",
            help="Order of arrival: a column of times, or rows: the file's own order.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the run.")] = None
    scale: Scale = "laptop"
    out: Annotated[Path | None, typer.Option(help="Directory to write to.")] = None
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw it for print: .pdf, .svg or .png, with its data beside it as CSV."),
    ] = None
    json_output: Json = False


@dataclass(frozen=True, kw_only=True)
class RunOptions(QueryOptions):
    """How to run it."""

    topology: Annotated[
        str | None,
        typer.Option(
            help="The system to run it on; auto, the default, takes one that fits the query.",
            autocompletion=complete_topology,
        ),
    ] = None
    pairs: Annotated[bool, typer.Option("--pairs", help="Write every pair found.")] = False
    backend: Backend = None
    clock: Annotated[
        Literal["virtual", "live"] | None,
        typer.Option(help="Virtual time, or live: on Ray, at full speed, with nothing simulated."),
    ] = None
    processes: Annotated[
        str | None,
        typer.Option(help="Ray processes to pack actors into; or each: one per actor."),
    ] = None
    address: Annotated[str | None, typer.Option(help="A running Ray cluster.")] = None
    save_every: Annotated[
        str | None,
        typer.Option(help="Save the run this often, as in 10s, for --resume to go on from there."),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with the interrupted run in this directory, as it was started."),
    ] = None
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Show the PEs while it runs: load, queue, how far behind."),
    ] = False
    point: Annotated[
        int | None, typer.Option(help="Of a study, run this point alone, by its number.")
    ] = None
    repeat: Annotated[
        int | None,
        typer.Option(help="Of a study, run every point with this many seeds, for 95 % intervals."),
    ] = None


ScenarioName = Annotated[
    str | None,
    typer.Argument(
        help="A scenario's name (see `joinsim list`) or a TOML file.",
        autocompletion=complete_scenario,
    ),
]


QueryOrScenario = Annotated[
    str | None,
    typer.Argument(
        help="A query, as SQL (or --query), or a scenario's name, or a TOML file.",
        autocompletion=complete_scenario,
    ),
]

Options = TypeVar("Options", bound=QueryOptions)


def with_options(kind: type[Options]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the fields of *kind* as options; its body gets them as one object."""
    shared = inspect.signature(kind, eval_str=True).parameters

    def decorate(body: Callable[..., int]) -> Callable[..., int]:
        own = inspect.signature(body, eval_str=True).parameters.values()
        mine = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own
            if parameter.name != "options"
        ]

        def command(**values: Any) -> int:
            options = kind(**{name: values.pop(name) for name in shared})
            return body(options=options, **values)

        command.__name__, command.__doc__ = body.__name__, body.__doc__
        command.__signature__ = inspect.Signature([*mine, *shared.values()])  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in [*mine, *shared.values()]}
        return command

    return decorate


def open_scenario(
    options: QueryOptions, name: str | None, settings: dict[str, Any] | None = None
) -> tuple[Scenario, Terminal]:
    """Return the scenario that *options* describe, and the terminal that shows it.

    Of *settings* those that are None are left out. Raise :exc:`ConfigError` naming an option that
    is missing, wrong or too many.
    """
    watch = isinstance(options, RunOptions) and options.watch
    terminal = open_terminal(quiet=options.json_output, watch=watch)
    check_figure(options)
    from joinsim import ConfigError
    from joinsim._scenario import Scenario

    query = options.query
    if name is not None and " " in name.strip() and Path(name).suffix != ".toml":
        name, query = None, name
    if (name is None) == (query is None):
        raise ConfigError(
            "give either a scenario (see `joinsim list`) or a query and its data, as in "
            'joinsim run --query "SELECT ..." --data FILE'
        )
    data = options.data or []
    if name is None and not data:
        raise ConfigError("a query needs --data FILE, one per stream of the query")
    streams = [{"files": [str(path)]} for path in data]
    scenario = Scenario(
        {"query": query, "streams": streams} if name is None else name,
        scale=options.scale,
        observer=terminal,
        keep=True,
        replay=replay_command,
        wall_clock=CLOCK.get(),
    )
    given = _run_settings(options) | (settings or {})
    changed: dict[str, Any] = {}
    if data or options.time or options.arrival:
        changed["streams"] = _with_files(scenario.base, data, options)
    changed |= parse_settings(options.settings or [])  # may be of one of these streams
    changed |= {key: value for key, value in given.items() if value is not None}
    return scenario.with_settings(changed), terminal


def check_figure(options: QueryOptions) -> None:
    """Raise :exc:`ConfigError` or :exc:`OutputError`, before anything runs, for a wrong file."""
    if options.figure is not None:
        from actors.whole_files import check_folder
        from scenarios.report.picture import check_suffix

        check_suffix(options.figure)
        check_folder(options.figure)


def _run_settings(options: QueryOptions) -> dict[str, Any]:
    settings: dict[str, Any] = {"rows": options.rows, "seed": options.seed}
    if isinstance(options, RunOptions):
        settings |= {
            "topology": options.topology,
            # Live is on Ray alone, so it need not be said twice.
            "backend": options.backend or ("ray" if options.clock == "live" else None),
            "clock": options.clock,
            "processes": options.processes,
            "pairs": options.pairs or None,
            "repeat": options.repeat,
        }
    return settings


def _with_files(config: RunConfig, data: list[Path], options: QueryOptions) -> list[dict[str, Any]]:
    """Return the configuration's streams with the files and the times given as options."""
    from joinsim import ConfigError
    from spark_bridge.prepared import SUMMARY

    streams = [stream.model_dump() for stream in config.streams]
    data = _in_order(config, data)
    if data and len(data) != len(streams):
        raise ConfigError(f"--data: {config.name} has {len(streams)} stream(s), {len(data)} given")
    for stream, path in zip(streams, data, strict=False):
        stream |= {"files": [str(path)], "synthetic": None, "table": None}
    for key, meaning in (("time", "event time"), ("arrival", "order of arrival")):
        columns = _by_place(config, f"--{key}", getattr(options, key) or [])
        for place, column in columns.items():
            if place < len(data) and (data[place] / SUMMARY).is_file():
                raise ConfigError(
                    f"--{key} {column}: {data[place]} is a prepared stream, and its {meaning} was "
                    f"settled then. Leave --{key} out, or give the raw file"
                )
            if place < len(streams):  # else files are missing, which is reported later
                streams[place][key] = column
    return streams


def _in_order(config: RunConfig, data: list[Path]) -> list[Path]:
    """Return the files of ``[STREAM=]FILE`` in the order of the query's streams."""
    from joinsim import ConfigError

    if not any(re.match(r"\w+=", str(path)) and not path.exists() for path in data):
        return data
    values = list(map(str, data))
    files = _by_place(config, "--data", values)
    if len(files) < len(values):
        raise ConfigError(f"--data {' --data '.join(values)}: give one file for each stream")
    return [Path(file) for _, file in sorted(files.items())]


def _by_place(config: RunConfig, option: str, values: list[str]) -> dict[int, str]:
    """Read ``[STREAM=]VALUE`` of an option, by the stream's place in the query.

    What names no stream is of all that have none of their own. Raise :exc:`ConfigError` where a
    stream is unknown, or has two.
    """
    from joins.errors import suggest
    from joins.queries.parser import parse_query
    from joinsim import ConfigError

    names = parse_query(config.query).streams
    of_all: list[str] = []
    of_one: dict[int, str] = {}
    for value in values:
        named = re.fullmatch(r"(\w+)=([^=].*)", value)
        if named is None:
            of_all.append(value)
            continue
        name, column = named.groups()
        if name not in names:
            raise ConfigError(
                f"{option} {value}: the query has no stream {name}; "
                f"{suggest(name, names, 'it has')}"
            )
        if names.index(name) in of_one:
            raise ConfigError(f"{option} is given twice for {name}: {values}")
        of_one[names.index(name)] = column
    if len(of_all) > 1:
        raise ConfigError(
            f"{option} {of_all[0]} and {option} {of_all[1]}: name the stream of each, as in "
            f"{option} {names[0]}={of_all[0]} {option} {names[-1]}={of_all[1]}"
        )
    return {place: column for column in of_all for place in range(len(names))} | of_one


_NONE_IS_A_VALUE = ("network.transport", "recovery.guarantee")
"""Keys that can be ``none``; any other is then as if it were not set."""


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` settings, lists and tables written as in TOML.

    Raise :exc:`ConfigError` naming one that is none.
    """
    from joinsim import ConfigError
    from scenarios.scenario_files import parse_toml

    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not (key and equals):
            raise ConfigError(f"--set {setting}: write it as KEY=VALUE")
        left_out = text.lower() == "none" and key not in _NONE_IS_A_VALUE
        values[key] = None if left_out else text
        if text.startswith(("[", "{")):
            try:
                values[key] = parse_toml(f"value = {text}")["value"]
            except ValueError as error:
                raise ConfigError(f"--set {setting}: the value is not TOML: {error}") from None
    return values


def replay_command(seed: int) -> str:
    """Return the command that repeats this one."""
    arguments = sys.argv[1:]
    # After two dashes alone nothing is an option, as a query that begins with a comment.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    named = {argument.split("=")[0] for argument in arguments[:end]}
    if not named & {"--seed", "--point"}:  # a point has a seed of its own
        arguments[end:end] = ["--seed", str(seed)]
    return shlex.join(["joinsim", *arguments])


def split_names(listed: str | None) -> list[str]:
    """Return the names in an option's list with commas."""
    return [name.strip() for name in (listed or "").split(",") if name.strip()]
