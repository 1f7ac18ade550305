"""``joinsim run`` of a study."""

from __future__ import annotations

import shlex

from scenarios import scenario_files
from scenarios.commands.options import RunOptions, replay_command, settings_of
from scenarios.commands.output import exit_code, print_json, worst
from scenarios.commands.single import run_one
from scenarios.config import RunConfig
from scenarios.failures import EXIT_STOPPED
from scenarios.many_runs import Preparation
from scenarios.report.pages import write_study_page
from scenarios.run_directory import new_run_directory
from scenarios.run_json import summary
from scenarios.scenario_files import ConfigError
from scenarios.study.findings import plan_points, run_points
from scenarios.study.study import Point, Study, load_study
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_findings, show_study


def run_study(options: RunOptions) -> int:
    """Run a study, or the one point of it that was asked for; return the worst exit code."""
    study = _study(options)
    terminal = Terminal(quiet=options.json_output)
    if options.point is not None:
        return _run_point(study, options.point, options, terminal)
    with terminal.preparing() as progress:
        plans = plan_points(study, Preparation(progress))
    directory = new_run_directory(study.base.name, study.base.seed, options.out)
    show_study(terminal.out, study)
    with terminal.points(len(study.points)) as display:
        findings = run_points(
            study,
            plans,
            directory,
            on_point=display.on_point,
            replay=lambda point: _replay_alone(options, point),
        )
    replay = replay_command(study.base.seed)
    findings.write_json(directory, replay)
    write_study_page(findings, directory, replay)
    show_findings(terminal.out, findings, directory, replay)
    if options.json_output:
        print_json(findings.as_json(replay))
    return worst(
        EXIT_STOPPED if result.failure else exit_code(result.passed)
        for result in findings.results.values()
    )


def _study(options: RunOptions) -> Study:
    assert options.scenario is not None
    if options.address or options.pairs or options.topology:
        raise ConfigError(
            f"{options.scenario} is a study of many runs: --topology, --pairs and --address are "
            "for one run; name it with --point"
        )
    base = scenario_files.load(options.scenario, scale=options.scale)
    study = load_study(options.scenario, scale=options.scale, settings=settings_of(options, base))
    assert study is not None
    return study


def _run_point(study: Study, number: int, options: RunOptions, terminal: Terminal) -> int:
    if not 1 <= number <= len(study.points):
        raise ConfigError(
            f"--point {number}: {study.base.name} has points 1 to {len(study.points)}"
        )
    config = _alone(study.points[number - 1].config, options)
    if config.survey:
        raise ConfigError(f"--point {number}: it is a survey, which is not run; run all points")
    replay = replay_command(config.seed)
    report = run_one(config, terminal, replay=replay, out=options.out)
    if options.json_output:
        print_json(summary(report))
    return exit_code(report.verdict.passed)


def _alone(config: RunConfig, options: RunOptions) -> RunConfig:
    """Return the point with what was set on the command line set last: it wins over the study."""
    return scenario_files.change(config, settings_of(options, config))


def _replay_alone(options: RunOptions, point: Point) -> str:
    words = ["joinsim", "run", str(options.scenario), "--scale", options.scale]
    words += ["--point", str(point.number), "--seed", str(point.config.seed)]
    words += ["--rows", str(options.rows)] if options.rows else []
    words += ["--backend", options.backend] if options.backend else []
    for path in options.data:
        words += ["--data", str(path)]
    for setting in options.settings:
        words += ["--set", setting]
    return shlex.join(words)
