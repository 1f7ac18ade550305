"""What is asked for on the command line, and the configuration that it comes to."""

from __future__ import annotations

import shlex
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.scenario_files import ConfigError
from spark_bridge.prepared import SUMMARY

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
    clock: str | None = None
    processes: int | None = None
    address: str | None = None
    scale: str = "laptop"
    point: int | None = None
    json_output: bool = False


def configuration(options: RunOptions) -> RunConfig:
    """Return the configuration that *options* ask for.

    Raise :exc:`ConfigError` naming an option that is missing, wrong or too many.
    """
    if (options.scenario is None) == (options.query is None):
        raise ConfigError(
            "give either a scenario (see `joinsim list`) or a query and its data, as in "
            'joinsim run --query "SELECT ..." --data FILE'
        )
    if options.scenario is not None:
        config = scenario_files.load(options.scenario, scale=options.scale)
        if options.topology not in (None, config.topology):
            config = scenario_files.change(config, {"parameters": {}})  # they are the other's
    else:
        if not options.data:
            raise ConfigError("a query needs --data FILE, one per stream of the query")
        config = scenario_files.build(
            {
                "query": options.query,
                "streams": [{"files": [str(path)]} for path in options.data],
            },
            where="query",
        )
    return scenario_files.change(config, settings_of(options, config))


def settings_of(options: RunOptions, config: RunConfig) -> dict[str, Any]:
    """Return what *options* change of *config*, by key."""
    settings = parse_settings(options.settings)
    given = {
        "topology": options.topology,
        "rows": options.rows,
        "seed": options.seed,
        # Live is on Ray alone, so it need not be said twice.
        "backend": options.backend or ("ray" if options.clock == "live" else None),
        "clock": options.clock,
        "processes": options.processes,
        "pairs": options.pairs or None,
    }
    settings |= {key: value for key, value in given.items() if value is not None}
    if options.data or options.time:
        settings["streams"] = _with_data(config, options)
    return settings


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` settings; raise :exc:`ConfigError` naming one that is not."""
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set {setting}: write it as KEY=VALUE")
        values[key.strip()] = None if value.strip().lower() == "none" else value.strip()
    return values


def replay_command(seed: int) -> str:
    """Return the command that repeats this one."""
    arguments = sys.argv[1:]
    if "--seed" not in arguments:
        arguments = [*arguments, "--seed", str(seed)]
    return shlex.join(["joinsim", *arguments])


def check_address(config: RunConfig, address: str | None) -> None:
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


def _with_data(config: RunConfig, options: RunOptions) -> list[dict[str, Any]]:
    """Return the configuration's streams with the files and the event time given as options."""
    streams = [stream.model_dump() for stream in config.streams]
    if options.data and len(options.data) != len(streams):
        raise ConfigError(
            f"--data: {config.name} has {len(streams)} stream(s), {len(options.data)} given"
        )
    for stream, path in zip(streams, options.data, strict=False):
        stream |= {"files": [str(path)], "synthetic": None}
    if options.time:
        ready = [path for path in options.data if (path / SUMMARY).is_file()]
        if ready:
            raise ConfigError(
                f"--time {options.time}: {ready[0]} is a prepared stream, and its event time was "
                "settled then. Leave --time out, or give the raw file"
            )
        for stream in streams:
            stream["time"] = options.time
    return streams
