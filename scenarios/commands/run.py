"""``joinsim run`` and ``joinsim demo``."""

from __future__ import annotations

from typing import Any

from scenarios import scenario_files
from scenarios.commands.options import RunOptions, configuration, replay_command
from scenarios.commands.output import exit_code, print_json
from scenarios.commands.single import run_one
from scenarios.commands.study import run_study
from scenarios.failures import EXIT_FAIL
from scenarios.run_json import summary
from scenarios.scenario_files import ConfigError
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_backends

DEMO_SCENARIO = "spo-q3"


def demo(*, json_output: bool) -> int:
    """Run the demo scenario on Ray and inline; return the exit code."""
    terminal = Terminal(quiet=json_output)
    reports = []
    for backend in ("ray", "inline"):
        config = scenario_files.change(scenario_files.load(DEMO_SCENARIO), {"backend": backend})
        replay = f"joinsim run {DEMO_SCENARIO} --backend {backend} --seed {config.seed}"
        reports.append(run_one(config, terminal, replay=replay))
    equal = len({report.outcome.digest for report in reports}) == 1
    show_backends(terminal.out, reports, equal=equal)
    if json_output:
        print_json({"runs": [summary(report) for report in reports], "digests_equal": equal})
    codes = [exit_code(report.verdict.passed) for report in reports]
    return EXIT_FAIL if not equal else max(codes)


def run(options: RunOptions) -> int:
    """Run what *options* say, a single run or a study; return the exit code."""
    if _is_study(options):
        return run_study(options)
    if options.point is not None:
        raise ConfigError(f"--point {options.point}: only a study has points")
    config = configuration(options)
    terminal = Terminal(quiet=options.json_output)
    report = run_one(
        config,
        terminal,
        replay=replay_command(config.seed),
        out=options.out,
        address=options.address,
    )
    if options.json_output:
        print_json(summary(report))
    return exit_code(report.verdict.passed)


def _is_study(options: RunOptions) -> bool:
    if options.scenario is None:
        return False
    values: dict[str, Any] = scenario_files.read(options.scenario, scale=options.scale)
    return scenario_files.STUDY in values
