"""What the results of a study, or of a point, depend on, as a digest: equal ones, equal results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from scenarios.config import RunConfig
from scenarios.machine_record import describe_machine
from scenarios.run_json import versions
from scenarios.streams import REPOSITORY, find_file
from scenarios.study.study import Study

_PACKAGES = ("actors", "joins", "netsim", "scenarios", "spark_bridge", "topologies")


def digest_inputs(study: Study) -> str:
    """Return a digest of the runs' configurations, their data, our code and its libraries.

    Where anything is measured, so is the machine: what another one measured is not reused.
    Claims and labels are no part of it: results are judged and drawn anew. Raise
    :exc:`ConfigError` where there is no data.
    """
    configs = [point.config for point in study.points]
    return digest_runs(configs, parts=study.section.parts, measured=study.is_measured)


def digest_runs(
    configs: Sequence[RunConfig],
    *,
    parts: Mapping[str, Sequence[str]],
    measured: bool,
    tables: Iterable[pa.Table] = (),
) -> str:
    """Return the digest of some runs; *tables* are the data that the caller passed in memory."""
    digest = hashlib.sha256(repr((versions(), _digest_code(), parts)).encode())
    if measured:
        digest.update(repr(describe_machine()).encode())
    for config in configs:
        digest.update(config.model_dump_json().encode())
    for path in _data(configs):
        file = path.stat()
        digest.update(f"{path} {file.st_mtime_ns} {file.st_size}\n".encode())
    for table in tables:
        for name in table.column_names:
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(table[name].to_numpy()).data)
    return digest.hexdigest()


def _data(configs: Sequence[RunConfig]) -> Iterator[Path]:
    """Return the files that streams are read from; synthetic streams have none."""
    streams = {stream.files for config in configs for stream in config.streams}
    for files in sorted(files for files in streams if files):
        path = find_file(files)
        yield path.resolve()
        yield from sorted(path.rglob("*"))


@cache
def _digest_code() -> str:
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*")):
            is_scenario = path.suffix == ".toml" and package == "scenarios"
            if path.suffix in (".py", ".toml") and not is_scenario:
                digest.update(path.read_bytes())
    return digest.hexdigest()
