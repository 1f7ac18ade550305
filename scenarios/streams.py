"""Finding the data of streams, raw or prepared, and the columns of their event times and texts.

Text is stored as codes that are equal exactly where the texts are, and can be compared with ``=``
and ``!=``, with whatever shares its dictionary: which fields of a query those are, and whether the
codes of prepared streams match.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from actors.whole_files import require_utf8
from joins.queries.interval import TIME_FIELD
from joins.queries.query import JoinQuery, Predicate
from joins.queries.selection import select
from scenarios.config import RunConfig, StreamConfig
from scenarios.scenario_files import ConfigError
from spark_bridge.pipeline.raw_files import inspect_files
from spark_bridge.pipeline.raw_source import RawSource, lay_out
from spark_bridge.prepared import SUMMARY, PreparedStream, load_stream, names_of

REPOSITORY = Path(__file__).resolve().parents[1]
"""The folder of our packages: a checkout, or where they are installed."""
SAMPLES = Path(__file__).resolve().parent / "samples"
"""The sample data that comes with joinsim."""
DATA_VARIABLE = "JOINSIM_DATA"
PREPARED_VARIABLE = "JOINSIM_PREPARED"


def data_folders() -> list[Path]:
    """Return where raw files are looked for: a folder of one's own, the shared one, our samples."""
    own = os.environ.get(DATA_VARIABLE)
    shared = REPOSITORY.parent / "shared" / "data"
    return [*([Path(own)] if own else []), *([shared] if shared.is_dir() else []), SAMPLES]


def prepared_folder() -> Path:
    """Return where prepared streams are kept: on a cluster, a folder that every node reaches.

    Raise :exc:`OutputError` where its name is not in UTF-8.
    """
    folder = Path(os.environ.get(PREPARED_VARIABLE, "prepared"))
    require_utf8(folder)
    return folder


def look_for(name: str | Path) -> Path | None:
    """Return where a file or folder is, as given or in a data folder; None if it is nowhere."""
    places = (Path(name), *(folder / name for folder in data_folders()))
    return next((path for path in places if path.exists()), None)


def find_file(candidates: tuple[str, ...]) -> Path:
    """Return the first of *candidates* that is there, as given or in a data folder.

    Raise :exc:`ConfigError` naming the files and where they were looked for, or what it is if it
    may never end.
    """
    for path in filter(None, map(look_for, candidates)):
        if not (path.is_file() or path.is_dir()):
            raise ConfigError(
                f"{path} is a pipe or a device, which may never start or never end, and a "
                "stream is read to its end before a run: save as much of it as you want in a file"
            )
        return path
    where = ", ".join(str(folder) for folder in data_folders())
    raise ConfigError(
        f"no data: there is no {' or '.join(candidates)}, neither here nor in {where}. "
        f"Give another file as its data, or set {DATA_VARIABLE} to the folder that holds it"
    )


def find_sources(config: RunConfig, query: JoinQuery) -> list[RawSource | PreparedStream]:
    """Return what each stream of *query* is to be prepared from, or the stream if it is already.

    Raise :exc:`ConfigError` when streams and data do not go together, and :exc:`DataError` for a
    file or a column that is wrong.
    """
    if len(config.streams) != len(query.streams):
        raise ConfigError(
            f"the query has {len(query.streams)} stream(s), {', '.join(query.streams)}, but data "
            f"is given for {len(config.streams)}"
        )
    found: list[RawSource | PreparedStream] = []
    raw: dict[int, tuple[RawSource, list[str]]] = {}
    names = []
    for place, stream in enumerate(config.streams):
        path = raw_file(stream)
        if (path / SUMMARY).is_file():
            prepared = load_stream(path)
            check_time(query, place, prepared)
            found.append(prepared)
            names.append(prepared.names)
        else:
            source = RawSource(
                name=query.streams[place],
                paths=(path,),
                time=event_time(query, place, TIME_FIELD if stream.synthetic else stream.time),
                arrival=stream.arrival,
                where=stream.where,
                fields=query.fields(place),
                codes=dictionary_names(query)[place],
            )
            layout = lay_out(source, list(inspect_files(source.paths)[0].columns))
            stored = [*layout.names.values()]
            raw[place] = source, stored
            found.append(source)
            names.append(names_of(["id", "ts", *stored], layout.own_names))
    if not raw:
        return found
    selected = select(query, names)
    for place, (source, stored) in raw.items():
        read = {*source.fields, *(one.column for one in selected if one.stream == place)}
        columns = [name for name in stored if name in read]
        if columns != stored:
            found[place] = replace(source, columns=columns)
    return found


def event_time(query: JoinQuery, place: int, given: str | None) -> str | None:
    """Return what gives the event time of a stream of *query*: *given*, or as the query names it.

    None stands for what a look at the columns finds. Raise :exc:`ConfigError` where the query and
    *given* name two columns.
    """
    named, stream = query.times[place], query.streams[place]
    if named == TIME_FIELD:
        return given
    if given not in (None, named):
        raise ConfigError(
            f"the query compares {stream}.{named}, but the event time of {stream} is {given!r}: an "
            "interval is over event time, so name that column in both, or write "
            f"{stream}.{TIME_FIELD}"
        )
    return named


def check_time(query: JoinQuery, place: int, stream: PreparedStream) -> None:
    """Raise :exc:`ConfigError` where *query* names another event time than *stream* was given."""
    named = query.times[place]
    if named not in (TIME_FIELD, stream.time):
        raise ConfigError(
            f"the query compares {query.streams[place]}.{named}, but {stream.path.parent} was "
            f"prepared with the event time {stream.time or TIME_FIELD!r}: write "
            f"{query.streams[place]}.{TIME_FIELD}, or give the raw file"
        )


def raw_file(stream: StreamConfig) -> Path:
    """Return the file of *stream*, generated if it is synthetic and not there yet.

    Raise :exc:`ConfigError` where it is not found, or was a table in memory.
    """
    if stream.synthetic:
        return stream.synthetic.write(prepared_folder() / "synthetic")
    if stream.table:
        raise ConfigError(
            f"stream {stream.name}: its data was a table in memory, of {stream.table}, which no "
            "file of a scenario has: pass it to joinsim.run with the query, or save it and name "
            "its file in files, in place of table"
        )
    return find_file(stream.files)


def dictionary_names(query: JoinQuery) -> tuple[dict[str, str], ...]:
    """Return for each stream its join fields that may be text: to the name of their dictionary.

    Fields that are compared with each other, directly or by way of others, share one, which is
    named after the first of them. Where one of them is compared otherwise than with ``=`` and
    ``!=``, none of them may be text.
    """
    groups: list[set[tuple[int, str]]] = []
    ordered: set[tuple[int, str]] = set()
    for predicate in query.predicates:
        merged = {(side.stream, side.name) for side in (predicate.left, predicate.right)}
        if not _can_compare_text(predicate):
            ordered |= merged
        merged = merged.union(*(group for group in groups if group & merged))
        groups = [group for group in groups if not group & merged] + [merged]
    names: tuple[dict[str, str], ...] = tuple({} for _ in query.streams)
    for group in groups:
        if group & ordered:
            continue
        stream, first = min(group)
        for at, field in sorted(group):
            names[at][field] = f"{query.streams[stream]}.{first}"
    return names


def codes_mistake(query: JoinQuery, streams: Sequence[PreparedStream]) -> str | None:
    """Return which comparison the codes of *streams* cannot answer, and why; None without one."""
    for predicate in query.predicates:
        left, right = (
            streams[side.stream].codes.get(side.name) for side in (predicate.left, predicate.right)
        )
        if left is None and right is None:
            continue
        text, other = predicate.left, predicate.right
        if left is None:
            text, other = other, text
        if not _can_compare_text(predicate):
            return f"{predicate}: {text.text} is text, which = and != alone can compare"
        if None in (left, right):
            return f"{predicate}: {text.text} is text, and {other.text} is a number"
        if left != right:
            return (
                f"{predicate}: both are text, but were prepared apart, each with a dictionary of "
                "its own, so that their codes cannot be compared. Give the raw files of all "
                "streams: they are then prepared together"
            )
    return None


def _can_compare_text(predicate: Predicate) -> bool:
    operator = predicate.operator
    return (operator.is_equality or operator.negated) and not operator.subtracts
