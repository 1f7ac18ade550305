"""All figures and tables of a paper, run one after the other and reported together."""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import PositiveInt

from actors.whole_files import at_home, write_text
from joins.errors import JoinsimError
from joinsim._outcomes import Reproduction, StudyRun
from joinsim._scenario import Scenario, check_scale
from scenarios.observer import SILENT, Observer
from scenarios.run_directory import RUNS, shared_directory
from scenarios.scenario_files import ConfigError
from scenarios.study.findings import Findings
from scenarios.study.reproduction import (
    RECORD,
    ReproducedPaper,
    ReproducedStudy,
    claims_document,
    find_studies,
    read_reproductions,
)


def reproduce(
    paper: str,
    *,
    scale: str = "laptop",
    out: str | Path | None = None,
    repeat: PositiveInt | None = None,
    fresh: bool = False,
    observer: Observer = SILENT,
) -> Reproduction:
    """Run every figure and table of a paper, and judge all that the paper claims of them.

    Each study has a folder of its own, and is run only where that has no complete results of the
    same configuration, data and code: so a call that was interrupted goes on where it stopped.

    Parameters
    ----------
    paper
        ``spo``, ``pim``, ``panjoin``, ``oij`` or ``semijoin``.
    scale
        ``smoke`` (about a minute a paper), ``laptop`` or ``paper``.
    out
        Folder for what it writes; by default ``runs/reproduce-PAPER/SCALE``.
    repeat
        How many seeds every point runs with; by default as each study says.
    fresh
        Whether to run all studies again.
    observer
        Shows progress; by default nothing is shown.

    Raises
    ------
    ConfigError
        There is no such paper.
    OutputError
        The folder cannot be written to, or has something else in it.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.reproduce("panjion", scale="smoke")
    ... except js.ConfigError as error:
    ...     print(error)
    no paper is called 'panjion': did you mean 'panjoin'? there are spo, pim, panjoin, oij, semijoin
    """
    names = find_studies(paper)
    directory = at_home(out) if out else RUNS / f"reproduce-{paper}" / scale
    words = ["joinsim", "reproduce", paper, "--scale", scale]
    words += ["--out", str(out)] if out else []
    words += ["--repeat", str(repeat)] if repeat else []
    replay = shlex.join(words)
    settings = {} if repeat is None else {"repeat": repeat}
    scenarios = [
        Scenario(name, scale=scale, settings=settings, observer=observer) for name in names
    ]
    with shared_directory(directory, RECORD):
        result = ReproducedPaper(paper=paper, scale=scale, studies=())
        result.write_json(directory, replay)
        for study in _run_studies(scenarios, directory, fresh=fresh):
            result = replace(result, studies=(*result.studies, study))
            result.write_json(directory, replay)
        return Reproduction(result, directory, replay).write()


def claims(
    directories: Sequence[str | Path] = (),
    *,
    scale: str = "laptop",
    out: str | Path = "reproduction.md",
) -> list[str]:
    """Write one table of all papers' claims into a Markdown file; return the papers' names.

    Parameters
    ----------
    directories
        What `reproduce` made; by default what it made of all papers, below ``runs/``.
    scale
        Of those that are taken by default.
    out
        The file.

    Raises
    ------
    ConfigError
        There is no such scale or no reproduction, or a directory has none that is finished.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.claims(["runs/elsewhere"])
    ... except js.ConfigError as error:
    ...     print(error)
    runs/elsewhere is no reproduction: there is no runs/elsewhere/reproduce.json
    """
    check_scale(scale)
    chosen = list(map(at_home, directories)) or sorted(RUNS.glob(f"reproduce-*/{scale}"))
    if not chosen:
        raise ConfigError(
            f"there is no reproduction at {scale} scale below {RUNS}/: run joinsim reproduce PAPER "
            f"--scale {scale} first, or name its directory"
        )
    records = read_reproductions(chosen)
    write_text(at_home(out), claims_document(records))
    return [record["paper"] for record in records]


def _run_studies(
    scenarios: list[Scenario], directory: Path, *, fresh: bool
) -> Iterator[ReproducedStudy]:
    """Run, or read, one study after the other; one that fails does not stop the others."""
    for scenario in scenarios:
        name, observer = str(scenario.source), scenario.observer
        replay = scenario._replay()
        title, figure = scenario.base.title, scenario.base.figure or ""
        findings, failure = None, ""
        try:
            findings = _run_study(scenario, directory / name, replay, fresh=fresh)
        except Exception as error:
            failure = str(error)
            if not isinstance(error, JoinsimError) or error.shows_traceback:  # a fault of ours
                path = directory / f"{name}-failure.txt"
                write_text(path, traceback.format_exc())
                failure = f"{type(error).__name__}: {error}; see {path}"
        if failure:
            observer.note(f"{name} failed: {failure}")
        yield ReproducedStudy(
            name=name,
            title=title,
            figure=figure,
            replay=replay,
            findings=findings,
            failure=failure,
        )


def _run_study(scenario: Scenario, directory: Path, replay: str, *, fresh: bool) -> Findings:
    """Return what a study came to: as *directory* has it, or as it is run now."""
    study = scenario.study
    assert study is not None  # by its name
    findings = None if fresh else Findings.read(study, directory)
    if findings is None:
        run = scenario.run(out=directory)
        assert isinstance(run, StudyRun)
        return run.result
    findings.write_json(directory, replay)  # its claims may be others by now
    scenario.observer.note(f"{study.base.name}: its results are in {directory}")
    return findings
