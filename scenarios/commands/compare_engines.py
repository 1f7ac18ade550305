"""``joinsim compare --engines``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scenarios.commands.options import RunOptions, configuration, replay_command
from scenarios.commands.output import exit_code, print_json
from scenarios.engines.comparison import EngineComparison, compare_engines
from scenarios.engines.registry import find_engines
from scenarios.failures import EXIT_STOPPED
from scenarios.plan import make_plan
from scenarios.report.pages import write_engines_page
from scenarios.run_directory import new_run_directory
from scenarios.scenario_files import ConfigError
from scenarios.streams import prepare_streams
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_engines


def compare(
    options: RunOptions, engines: str, topologies: Sequence[str], *, limit_s: float | None
) -> int:
    """Run one query on several engines; return the exit code: all equal, not equal, or failed."""
    terminal = Terminal(quiet=options.json_output)
    chosen = find_engines(engines)
    if len(topologies) > 1:
        raise ConfigError(
            f"--topologies {','.join(topologies)}: engines that run joinsim's operators run one "
            "topology; name one, or leave --engines out to compare topologies"
        )
    config = configuration(replace(options, topology=topologies[0] if topologies else None))
    with terminal.preparing() as progress:
        plan = make_plan(
            config, prepare=lambda c, query: prepare_streams(c, query, progress=progress)
        )
    directory = new_run_directory(f"engines-{config.name}", config.seed, options.out)
    replay = replay_command(config.seed)
    comparison: EngineComparison | None = None
    try:
        with terminal.points(len(chosen)) as display:
            for comparison in compare_engines(
                plan, chosen, directory, limit_s=limit_s, on_engine=display.on_point
            ):
                comparison.write_json(directory, replay)
    finally:  # Ctrl-C loses none of the engines that have run
        if comparison is not None:
            write_engines_page(comparison, directory, replay)
            show_engines(terminal.out, comparison, directory, replay)
    assert comparison is not None
    if options.json_output:
        print_json(comparison.as_json(replay))
    return EXIT_STOPPED if comparison.failed else exit_code(comparison.passed)
