"""``joinsim compare``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from scenarios.commands.options import (
    RunOptions,
    configuration,
    parse_settings,
    replay_command,
)
from scenarios.commands.output import exit_code, print_json, worst
from scenarios.config import RunConfig
from scenarios.failures import EXIT_STOPPED
from scenarios.many_runs import Preparation
from scenarios.report.pages import write_comparison_page
from scenarios.run_directory import new_run_directory
from scenarios.system_comparison import candidates, plan_all, run_all
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_comparison


def compare(options: RunOptions, topologies: Sequence[str]) -> int:
    """Run one query on several systems and rank them; return the worst exit code."""
    terminal = Terminal(quiet=options.json_output)
    base = configuration(replace(options, settings=[]))
    chosen = candidates(base, topologies, parse_settings(options.settings))
    with terminal.preparing() as progress:
        plans, refused = plan_all(chosen, Preparation(progress))
    directory = new_run_directory(f"compare-{base.name}", base.seed, options.out)
    with terminal.points(len(plans)) as display:
        comparison = run_all(
            plans, refused, directory, on_point=display.on_point, replay=_replay_alone(options)
        )
    replay = replay_command(base.seed)
    comparison.write_json(directory, replay)
    write_comparison_page(comparison, directory, replay)
    show_comparison(terminal.out, comparison, directory, replay)
    if options.json_output:
        print_json(comparison.as_json(replay))
    return worst(
        EXIT_STOPPED if result.failure else exit_code(result.passed)
        for result in comparison.results.values()
    )


def _replay_alone(options: RunOptions) -> Callable[[RunConfig], str]:
    """Return what tells the command that runs one of the systems alone."""
    words = ["joinsim", "run"]
    words += [options.scenario, "--scale", options.scale] if options.scenario else []
    words += ["--query", options.query] if options.query else []
    for path in options.data:
        words += ["--data", str(path)]
    words += ["--time", options.time] if options.time else []

    def command(config: RunConfig) -> str:
        own = ["--topology", config.topology, "--seed", str(config.seed)]
        own += ["--rows", str(config.rows)] if config.rows else []
        own += ["--backend", config.backend]
        for setting in options.settings:
            key = setting.partition("=")[0]
            own += ["--set", setting] if "." in key or key in RunConfig.model_fields else []
        for key, value in config.parameters.items():
            own += ["--set", f"{key}={value}"]
        return shlex.join([*words, *own])

    return command
