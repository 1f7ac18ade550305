"""Lines that repeat what was done with a scenario: a command where one can, else a Python call."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joins.queries.parser import parse_query
from scenarios.config import RunConfig
from scenarios.formatting import format_setting

RECORDED = "recorded"
"""The order of arrival of a stream that was prepared with one."""

_NOT_PASSED = {"name", "title", "figure", "query", "streams", "parameters", "pairs"}
"""Keys that are no parameters of ``joinsim.run``, or are passed otherwise."""
_OF_MANY = ("compare", "advise")
"""Functions that choose topologies themselves, and take none from a configuration."""


def python_call(config: RunConfig, function: str = "run", **more: Any) -> str:
    """Return the call of ``joinsim.run``, or of another *function*, that repeats a run over tables.

    Which tables is left to the reader; *more* is passed as well.
    """
    streams = ", ".join(f"{stream.name!r}: ..." for stream in config.streams)
    others = _NOT_PASSED | ({"topology"} if function in _OF_MANY else set())
    keys = config.written(without=others)
    if config.pairs != (function == "run"):
        keys["pairs"] = config.pairs
    for key in ("time", "arrival"):
        columns = {stream.name: getattr(stream, key) for stream in config.streams}
        given = {name: column for name, column in columns.items() if column not in (None, RECORDED)}
        keys |= {key: given} if given else {}
    words = "".join(
        f", {key}={value!r}" for key, value in (keys | config.parameters | more).items()
    )
    return f"joinsim.{function}({config.query_line!r}, {{{streams}}}{words})"


_COMMANDS = {"run": "run", "compare": "compare", "compare_engines": "compare"}
"""Function to the command that does the same."""


@dataclass(frozen=True, kw_only=True)
class Repeatable:
    """What a command or a call has to name of a scenario, see `joinsim.Scenario`."""

    source: str | Mapping[str, Any]
    config: RunConfig
    scale: str
    settings: Mapping[str, Any]
    number: int | None

    def line(self, function: str, more: Mapping[str, Any]) -> str:
        """Return what repeats *function* of it, to which *more* was passed."""
        more = {key: value for key, value in more.items() if value not in (None, (), [])}
        named = isinstance(self.source, str)
        if not named and any(stream.table for stream in self.config.streams):
            return python_call(self.config, function, **more)
        if self._has_command(function):
            return self._command(_COMMANDS[function], more)
        return self._method_call(function, more)

    def _has_command(self, function: str) -> bool:
        """Whether options of the command *function* can describe it.

        They can for a scenario's name, a TOML file and a query over files; `run` alone has one for
        a point of a study.
        """
        if function not in _COMMANDS or (self.number is not None and function != "run"):
            return False
        return isinstance(self.source, str) or all(
            len(stream.files) == 1 and stream.name is None and stream.where is None
            for stream in self.config.streams
        )

    def _command(self, command: str, more: Mapping[str, Any]) -> str:
        words = ["joinsim", command]
        if isinstance(self.source, str):
            words += [self.source, "--scale", self.scale]
            settings = dict(self.settings)
        else:
            words += _query_options(self.config)
            other = {"query", "streams", "parameters"}
            other |= {"topology"} if command in _OF_MANY else set()
            settings = self.config.written(without=other) | self.config.parameters
        if self.number is None:
            settings = {"seed": self.config.seed} | settings
        else:
            words += ["--point", str(self.number)]
        for key, value in settings.items():
            own = key in ("seed", "repeat")
            words += [f"--{key}", str(value)] if own else ["--set", format_setting(key, value)]
        for key, value in more.items():
            if isinstance(value, (int, float)):
                value = f"{value:g}"
            option = f"--{key.removesuffix('_s')}"
            words += [option, value if isinstance(value, str) else ",".join(value)]
        return shlex.join(words)

    def _method_call(self, function: str, more: Mapping[str, Any]) -> str:
        if isinstance(self.source, str):
            call = f"joinsim.scenario({self.source!r}, scale={self.scale!r})"
        else:
            scale = f", scale={self.scale!r}" if "scales" in self.source else ""
            call = f"joinsim.Scenario({dict(self.source)!r}{scale})"
        if self.settings:
            call += f".with_settings({dict(self.settings)!r})"
        if self.number is not None:
            call += f".point({self.number})"
        passed = ", ".join(f"{key}={value!r}" for key, value in more.items())
        return f"{call}.{function}({passed})"


def _query_options(config: RunConfig) -> list[str]:
    """Return the options of the command line that give a query and its files."""
    words = ["--query", config.query_line]
    for stream in config.streams:
        words += ["--data", stream.files[0]]
    names = parse_query(config.query).streams
    for name, stream in zip(names, config.streams, strict=True):
        words += ["--time", f"{name}={stream.time}"] if stream.time else []
        words += ["--arrival", f"{name}={stream.arrival}"] if stream.arrival else []
    return words
