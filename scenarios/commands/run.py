"""``joinsim run`` and ``joinsim demo``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from scenarios import config as configs
from scenarios.commands.options import (
    RunOptions,
    check_address,
    configuration,
    replay_command,
)
from scenarios.commands.output import exit_code, print_json
from scenarios.config import ConfigError
from scenarios.datasets import prepare_streams
from scenarios.failures import EXIT_FAIL
from scenarios.plan import Plan, make_plan
from scenarios.report.page import write_report
from scenarios.run import Report, execute
from scenarios.run_config import RunConfig
from scenarios.run_directory import new_run_directory
from scenarios.run_json import summary, write_run_json
from scenarios.terminal import Terminal
from scenarios.terminal.run_view import backends_compared, closing, opening

DEMO_SCENARIO = "spo-q3"


def demo(*, json_output: bool) -> int:
    """Run the demo scenario on Ray and inline; return the exit code."""
    terminal = Terminal(quiet=json_output)
    reports = []
    for backend in ("ray", "inline"):
        config = configs.change(configs.load(DEMO_SCENARIO), {"backend": backend})
        replay = f"joinsim run {DEMO_SCENARIO} --backend {backend} --seed {config.seed}"
        reports.append(run_one(config, terminal, replay=replay))
    equal = len({report.outcome.digest for report in reports}) == 1
    backends_compared(terminal.out, reports, equal=equal)
    if json_output:
        print_json({"runs": [summary(report) for report in reports], "digests_equal": equal})
    codes = [exit_code(report.verdict.passed) for report in reports]
    return EXIT_FAIL if not equal else max(codes)


def run(options: RunOptions) -> int:
    """Run what *options* say, a single run or a study; return the exit code."""
    if _is_study(options):
        from scenarios.commands.study import run_study

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


def run_one(
    config: RunConfig,
    terminal: Terminal,
    *,
    replay: str,
    out: Path | None = None,
    address: str | None = None,
) -> Report:
    """Run *config*, say what came out, and leave it in a run directory."""
    check_address(config, address)
    return run_prepared(
        prepared(config, terminal, address=address), terminal, replay=replay, out=out
    )


def prepared(config: RunConfig, terminal: Terminal, *, address: str | None = None) -> Plan:
    """Look up what *config* names and prepare its streams, showing how far that is."""
    with terminal.preparing() as progress:
        return make_plan(
            config, address=address, prepare=partial(prepare_streams, progress=progress)
        )


def run_prepared(plan: Plan, terminal: Terminal, *, replay: str, out: Path | None = None) -> Report:
    """Run *plan*, say what came out, and leave it in a run directory."""
    directory = new_run_directory(plan.config.name, plan.config.seed, out)
    opening(terminal.out, plan)
    with terminal.running(plan) as display:
        report = execute(plan, directory, on_run=display.on_run, on_judge=display.on_judge)
    write_run_json(report, replay)
    write_report(report, replay)
    closing(terminal.out, report, replay)
    return report


def _is_study(options: RunOptions) -> bool:
    if options.scenario is None:
        return False
    values: dict[str, Any] = configs.read(options.scenario, scale=options.scale)
    return configs.STUDY in values
