"""``joinsim plan``."""

from __future__ import annotations

from dataclasses import replace

from scenarios import scenario_files
from scenarios.commands.options import RunOptions, configuration, replay_command
from scenarios.commands.output import exit_code, print_json
from scenarios.commands.single import prepared, run_prepared
from scenarios.failures import EXIT_PASS
from scenarios.planning.planner import Planner
from scenarios.planning.semijoin import SemijoinPlanner
from scenarios.planning.window_join import WindowJoinPlanner
from scenarios.scenario_files import ConfigError
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_proposal

PLANNERS: dict[str, Planner] = {"semijoin": SemijoinPlanner(), "ibwj": WindowJoinPlanner()}
"""Topology to what plans for it; the first is asked where a query comes without a topology."""


def plan(options: RunOptions, *, simulate: bool) -> int:
    """Say how a system will go about a query, run it so unless told not to; return the exit code.

    Raise :exc:`ConfigError` for a system that plans nothing, and for a survey.
    """
    if options.query is not None and options.topology is None:
        options = replace(options, topology=next(iter(PLANNERS)))
    config = configuration(options)
    if config.survey:
        raise ConfigError(
            f"{config.name} is a survey, which has no query to plan for: joinsim run {config.name} "
            "takes it"
        )
    planner = PLANNERS.get(config.topology)
    if planner is None:
        raise ConfigError(
            f"{config.topology} has nothing to plan; --topology can be {', '.join(PLANNERS)}"
        )
    config = scenario_files.change(config, planner.left_to_it(config.parameters))
    terminal = Terminal(quiet=options.json_output)
    ready = prepared(config, terminal)
    proposal = planner.propose(ready)
    code = EXIT_PASS
    if simulate:
        report = run_prepared(ready, terminal, replay=replay_command(config.seed), out=options.out)
        proposal = planner.measure(report, proposal)
        code = exit_code(report.verdict.passed)
    show_proposal(terminal.out, proposal)
    if options.json_output:
        print_json(proposal.as_json())
    return code
