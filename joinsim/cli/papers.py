"""Commands for scenarios and papers: what there is, and what of the papers' claims holds here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from joinsim.cli.command_line import EXIT_STOPPED, PAPERS, app, exit_code, open_terminal, print_json
from joinsim.cli.options import Json, Scale


@app.command("list", rich_help_panel=PAPERS, epilog="Example: joinsim list oij")
def list_(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Only what has all of these words in it, as in oij or inequality."),
    ] = None,
    json_output: Json = False,
) -> None:
    """List the scenarios, by paper, and the topologies."""
    import joinsim

    listed = joinsim.search(*words or [])
    if json_output:
        print_json(listed)
        return
    from scenarios.terminal.printing import console, show_catalog

    show_catalog(console(quiet=False), listed)


@app.command(rich_help_panel=PAPERS, epilog="Example: joinsim reproduce panjoin --scale smoke")
def reproduce(
    paper: Annotated[
        Literal["spo", "pim", "panjoin", "oij", "semijoin"], typer.Argument(help="The paper.")
    ],
    scale: Scale = "laptop",
    out: Annotated[
        Path | None,
        typer.Option(help="Directory to write to; by default runs/reproduce-PAPER/SCALE."),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(help="Run every point with this many seeds; by default as each study says."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run studies again whose results are there.")
    ] = False,
    json_output: Json = False,
) -> int:
    """Run every figure and table of a paper, and judge all that the paper claims of them.

    It goes on where it was interrupted, and leaves one page and one table. The exit code is 1 if a
    claim fails without a reason that is known.
    """
    import joinsim
    from scenarios.terminal.views import show_reproduction

    terminal = open_terminal(quiet=json_output)
    finished = joinsim.reproduce(
        paper, scale=scale, out=out, repeat=repeat, fresh=fresh, observer=terminal
    )
    show_reproduction(terminal.out, finished.result, finished.directory, finished.replay)
    if json_output:
        print_json(finished.summary)
    stopped = any(study.stopped for study in finished.result.studies)
    return EXIT_STOPPED if stopped else exit_code(finished.passed)


@app.command(rich_help_panel=PAPERS, epilog="Example: joinsim claims --scale smoke --out claims.md")
def claims(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(help="What `joinsim reproduce` made; by default of all papers."),
    ] = None,
    scale: Scale = "laptop",
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("reproduction.md"),
) -> None:
    """Write one table of all papers' claims, from the directories of their reproductions."""
    import joinsim

    papers = joinsim.claims(directories or [], scale=scale, out=out)
    typer.echo(f"{out}: the claims of {', '.join(papers)}")
