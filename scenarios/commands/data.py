"""``joinsim data``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scenarios.commands.output import print_json
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_prepared
from spark_bridge.pipeline.source import StreamSource


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The options of ``joinsim data prepare``."""

    files: list[Path]
    name: str | None
    time: str | None
    fields: list[str]
    where: str | None
    rows: int | None
    out: Path
    json_output: bool


def prepare(options: DataOptions) -> None:
    """Prepare a stream and say what came of it."""
    from spark_bridge.pipeline.pipeline import prepare as prepare_stream

    source = StreamSource(
        name=options.name or options.files[0].name.split(".")[0],
        paths=tuple(options.files),
        time=options.time,
        fields=tuple(options.fields),
        where=options.where,
        rows=options.rows,
        codes={field: field for field in options.fields},
    )
    terminal = Terminal(quiet=options.json_output)
    with terminal.preparing() as progress:
        (stream,) = prepare_stream(source, options.out, progress=progress)
    show_prepared(terminal.out, stream)
    if options.json_output:
        print_json(
            {
                "name": stream.name,
                "path": str(stream.path),
                "rows": stream.rows,
                "rejected": stream.rejected,
                "notes": list(stream.notes),
            }
        )
