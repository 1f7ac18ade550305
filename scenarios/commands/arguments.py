"""Arguments and options that several commands take, as the parser is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Scenario = Annotated[
    str | None, typer.Argument(help="A scenario's name (see `joinsim list`) or a TOML file.")
]
Query = Annotated[str | None, typer.Option(help="The join, as SQL; instead of a scenario.")]
Topologies = Annotated[
    str | None, typer.Option(help="Systems to run, with commas between; by default all.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the run.")]
Out = Annotated[Path | None, typer.Option(help="Directory to write to.")]
Scale = Annotated[
    Literal["smoke", "laptop", "paper"], typer.Option(help="How large the scenario is run.")
]
Data = Annotated[
    list[Path] | None,
    typer.Option(help="Raw CSV or Parquet, or a prepared stream; one per stream, in order."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A parameter, or a dotted key."),
]
Rows = Annotated[int | None, typer.Option(help="Tuples taken of each stream.")]
Time = Annotated[str | None, typer.Option(help="Event time of the data: a column.")]
Clock = Annotated[
    Literal["virtual", "live"] | None,
    typer.Option(help="Virtual time, or live: on Ray, at full speed, with nothing simulated."),
]
Backend = Annotated[Literal["inline", "ray"] | None, typer.Option(help="Where the actors live.")]
