"""One run, from what a person asked for to the run directory."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from scenarios.commands.options import check_address
from scenarios.config import RunConfig
from scenarios.plan import Plan, make_plan
from scenarios.report.pages import write_report
from scenarios.run import Report, execute
from scenarios.run_directory import new_run_directory
from scenarios.run_json import write_run_json
from scenarios.streams import prepare_streams
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_plan, show_report


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
    show_plan(terminal.out, plan)
    with terminal.running(plan) as display:
        report = execute(plan, directory, on_run=display.on_run, on_judge=display.on_judge)
    write_run_json(report, replay)
    write_report(report, report.directory / "report.html", replay)
    show_report(terminal.out, report, replay)
    return report
