"""Finding raw data, and preparing it once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from joins.queries.query import JoinQuery
from scenarios.configuration.configs import ConfigError
from scenarios.configuration.run_config import RunConfig, StreamConfig
from scenarios.data.comparable import check_codes, dictionary_names
from scenarios.synthetic.stream import TIME
from spark_bridge.pipeline.source import StreamSource
from spark_bridge.prepared import SUMMARY, PreparedStream, check_order, load_stream

REPOSITORY = Path(__file__).resolve().parents[2]
DATA_VARIABLE = "JOINSIM_DATA"
PREPARED_VARIABLE = "JOINSIM_PREPARED"


def data_folders() -> list[Path]:
    """Return where raw files are looked for: a folder of one's own, the shared one, our samples."""
    own = os.environ.get(DATA_VARIABLE)
    folders = [Path(own)] if own else []
    return [*folders, REPOSITORY.parent / "shared" / "data", REPOSITORY / "data"]


def prepared_folder() -> Path:
    """Return where prepared streams are kept: on a cluster, a folder that every node reaches."""
    return Path(os.environ.get(PREPARED_VARIABLE, "prepared"))


def find_file(candidates: tuple[str, ...]) -> Path:
    """Return the first of *candidates* that is there, as given or in a data folder.

    Raise :exc:`ConfigError` naming the files and where they were looked for, or what it is if it
    may never end.
    """
    for name in candidates:
        for path in (Path(name), *(folder / name for folder in data_folders())):
            if path.exists():
                if not (path.is_file() or path.is_dir()):
                    raise ConfigError(
                        f"{path} is a pipe or a device, which may never start or never end, and a "
                        "stream is read to its end before a run: save as much of it as you want "
                        "in a file"
                    )
                return path
    where = ", ".join(str(folder) for folder in data_folders())
    raise ConfigError(
        f"no data: there is no {' or '.join(candidates)}, neither here nor in {where}. "
        f"Give --data FILE, or set {DATA_VARIABLE} to the folder that holds it"
    )


def prepare_streams(
    config: RunConfig,
    query: JoinQuery,
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[PreparedStream, ...]:
    """Return the query's streams, each prepared by Spark unless it is already.

    Raise :exc:`ConfigError` when streams and data do not go together, and what the pipeline
    raises.
    """
    if len(config.streams) != len(query.streams):
        raise ConfigError(
            f"the query has {len(query.streams)} stream(s), {', '.join(query.streams)}, but data "
            f"is given for {len(config.streams)}"
        )
    prepared: dict[str, PreparedStream] = {}
    raw = []
    codes = dictionary_names(query)
    for index, (name, stream) in enumerate(zip(query.streams, config.streams, strict=True)):
        path = _raw_file(stream)
        if (path / SUMMARY).is_file():
            prepared[name] = load_stream(path)
            check_order(prepared[name])
        else:
            raw.append(
                StreamSource(
                    name=name,
                    paths=(path,),
                    time=stream.time or (TIME if stream.synthetic else None),
                    where=stream.where,
                    fields=query.fields(index),
                    codes=codes[index],
                )
            )
    if raw:
        # Only here: a run over prepared streams needs nothing of the pipeline.
        from spark_bridge.pipeline.pipeline import prepare

        out = prepared_folder() / _folder(config.name, raw)
        prepared |= {stream.name: stream for stream in prepare(raw, out, progress=progress)}
    streams = tuple(prepared[name] for name in query.streams)
    check_codes(query, streams)
    return streams


def _raw_file(stream: StreamConfig) -> Path:
    """Return the file of *stream*, generated if it is synthetic and not there yet."""
    if stream.synthetic:
        return stream.synthetic.write(prepared_folder() / "synthetic")
    return find_file(stream.files)


def _folder(name: str, sources: list[StreamSource]) -> str:
    """Name a folder after what is asked for, so that runs that ask for other things keep theirs."""
    asked = repr([(s.name, s.paths, s.time, s.where, s.fields, s.codes) for s in sources])
    return f"{name}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"
