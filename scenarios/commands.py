"""What the commands of the command line do."""

from __future__ import annotations

import json
import shlex
import socket
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scenarios import config as configs
from scenarios.config import ConfigError, RunConfig
from scenarios.drawing.file import draw
from scenarios.failures import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from scenarios.report.page import write_report
from scenarios.run import Report, execute, make_parameters, make_plan
from scenarios.run_directory import new_run_directory
from scenarios.run_json import summary, write_run_json
from scenarios.terminal import Terminal
from spark_bridge.source import StreamSource
from topologies import TOPOLOGIES, find_topology

DEMO_SCENARIO = "spo-q3"
_CONNECT_S = 5.0  # a cluster that takes longer to answer is of no use to a run


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of ``joinsim run``; None and empty mean: as the scenario says."""

    scenario: str | None = None
    query: str | None = None
    data: list[Path] = field(default_factory=list)
    topology: str | None = None
    settings: list[str] = field(default_factory=list)
    rows: int | None = None
    time: str | None = None
    pairs: bool = False
    out: Path | None = None
    seed: int | None = None
    backend: str | None = None
    processes: int | None = None
    address: str | None = None
    scale: str = "laptop"
    json_output: bool = False


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The options of ``joinsim data prepare``."""

    files: list[Path]
    name: str | None
    time: str | None
    fields: list[str]
    where: str | None
    rows: int | None
    out: Path
    json_output: bool


def demo(*, json_output: bool) -> int:
    """Run the demo scenario on Ray and inline; return the exit code."""
    terminal = Terminal(quiet=json_output)
    reports = []
    for backend in ("ray", "inline"):
        config = configs.change(configs.load(DEMO_SCENARIO), {"backend": backend})
        replay = f"joinsim run {DEMO_SCENARIO} --backend {backend} --seed {config.seed}"
        reports.append(_run(config, terminal, replay=replay))
    equal = len({report.outcome.digest for report in reports}) == 1
    terminal.compared(reports, equal=equal)
    if json_output:
        _print_json({"runs": [summary(report) for report in reports], "digests_equal": equal})
    codes = [_exit_code(report) for report in reports]
    return EXIT_FAIL if not equal else max(codes)


def run(options: RunOptions) -> int:
    """Run what *options* say; return the exit code."""
    config = _configuration(options)
    terminal = Terminal(quiet=options.json_output)
    report = _run(
        config, terminal, replay=_replay(config), out=options.out, address=options.address
    )
    if options.json_output:
        _print_json(summary(report))
    return _exit_code(report)


def list_all(*, json_output: bool) -> None:
    """List scenarios and topologies."""
    scenarios = [configs.load(name) for name in configs.catalog()]
    if json_output:
        _print_json(
            {
                "scenarios": [
                    {
                        "name": scenario.name,
                        "title": scenario.title,
                        "figure": scenario.figure,
                        "topologies": [scenario.topology],
                        "query": " ".join(scenario.query.split()),
                    }
                    for scenario in scenarios
                ],
                "topologies": [
                    {
                        "name": topology.name,
                        "title": topology.title,
                        "exact": topology.exact,
                        "paper": topology.paper,
                        "parameters": [
                            parameter.name for parameter in fields(topology.parameters_type)
                        ],
                    }
                    for topology in TOPOLOGIES.values()
                ],
            }
        )
    else:
        Terminal().catalog(scenarios, list(TOPOLOGIES.values()))


def show(name: str, settings: list[str], out: Path | None) -> None:
    """Show a topology in the terminal, or draw it into a file."""
    topology = find_topology(name)
    parameters = make_parameters(topology, parse_settings(settings))
    graph = topology.build(topology.example(), parameters)
    if out:
        draw(graph, topology.title, out)
        Terminal().wrote(out)
    else:
        Terminal().topology(topology, graph)


def prepare(options: DataOptions) -> None:
    """Prepare a stream and say what came of it."""
    from spark_bridge.pipeline import prepare as prepare_stream

    source = StreamSource(
        name=options.name or options.files[0].name.split(".")[0],
        paths=tuple(options.files),
        time=options.time,
        fields=tuple(options.fields),
        where=options.where,
        rows=options.rows,
    )
    terminal = Terminal(quiet=options.json_output)
    with terminal.preparing() as progress:
        (stream,) = prepare_stream(source, options.out, progress=progress)
    terminal.prepared(stream)
    if options.json_output:
        _print_json(
            {
                "name": stream.name,
                "path": str(stream.path),
                "rows": stream.rows,
                "rejected": stream.rejected,
                "notes": list(stream.notes),
            }
        )


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` settings; raise :exc:`ConfigError` naming one that is not."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set {setting}: write it as KEY=VALUE")
        values[key.strip()] = None if value.strip().lower() == "none" else value.strip()
    return values


def _run(
    config: RunConfig,
    terminal: Terminal,
    *,
    replay: str,
    out: Path | None = None,
    address: str | None = None,
) -> Report:
    _check_address(config, address)
    with terminal.preparing() as progress:
        plan = make_plan(config, address=address, progress=progress)
    directory = new_run_directory(config.name, config.seed, out)
    terminal.opening(plan)
    with terminal.running(plan) as display:
        report = execute(plan, directory, on_run=display.on_run, on_judge=display.on_judge)
    write_run_json(report, replay)
    write_report(report, replay)
    terminal.closing(report, replay)
    return report


def _configuration(options: RunOptions) -> RunConfig:
    if (options.scenario is None) == (options.query is None):
        raise ConfigError("give either a scenario (see `joinsim list`) or --query with --data")
    if options.scenario is not None:
        config = configs.load(options.scenario, scale=options.scale)
    else:
        if not options.data:
            raise ConfigError("--query needs --data FILE, one per stream of the query")
        config = configs.build(
            {
                "query": options.query,
                "streams": [{"files": [str(path)]} for path in options.data],
            },
            where="--query",
        )
    settings = parse_settings(options.settings)
    given = {
        "topology": options.topology,
        "rows": options.rows,
        "seed": options.seed,
        "backend": options.backend,
        "processes": options.processes,
        "pairs": options.pairs or None,
    }
    settings |= {key: value for key, value in given.items() if value is not None}
    if options.data or options.time:
        settings["streams"] = _with_data(config, options)
    return configs.change(config, settings)


def _with_data(config: RunConfig, options: RunOptions) -> list[dict[str, Any]]:
    """Return the configuration's streams with the files and the event time given as options."""
    streams = [stream.model_dump() for stream in config.streams]
    if options.data and len(options.data) != len(streams):
        raise ConfigError(
            f"--data: {config.name} has {len(streams)} stream(s), {len(options.data)} given"
        )
    for stream, path in zip(streams, options.data, strict=False):
        stream["files"] = [str(path)]
    if options.time:
        for stream in streams:
            stream["time"] = options.time
    return streams


def _check_address(config: RunConfig, address: str | None) -> None:
    """Raise when nothing listens at *address*: Ray itself would try for minutes to reach it."""
    if address is None:
        return
    if config.backend != "ray":
        raise ConfigError(
            f"--address {address}: it is for --backend ray, and this run is {config.backend}"
        )
    if address == "auto":
        return
    try:
        at = urlsplit(address if "://" in address else f"ray://{address}")
        if not (at.hostname and at.port):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"--address {address}: write it as HOST:PORT, ray://HOST:PORT or auto"
        ) from None
    try:
        socket.create_connection((at.hostname, at.port), _CONNECT_S).close()
    except OSError as error:
        raise ConfigError(
            f"--address {address}: nothing answers there ({error.strerror or error}). Give the "
            "address of a running cluster (`ray start --head` prints it), or leave it out to "
            "start Ray here"
        ) from None


def _replay(config: RunConfig) -> str:
    """Return the command that repeats this run."""
    arguments = sys.argv[1:]
    if "--seed" not in arguments:
        arguments = [*arguments, "--seed", str(config.seed)]
    return shlex.join(["joinsim", *arguments])


def _exit_code(report: Report) -> int:
    passed = report.verdict.passed
    if passed is None:
        return EXIT_UNKNOWN
    return EXIT_PASS if passed else EXIT_FAIL


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))
