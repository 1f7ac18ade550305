"""What a study's results depend on, as one digest: equal digests, equal results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from scenarios.machine_record import describe_machine
from scenarios.run_json import versions
from scenarios.streams import REPOSITORY, find_file
from scenarios.study.study import Study

_PACKAGES = ("actors", "joins", "netsim", "scenarios", "spark_bridge", "topologies")


def digest_inputs(study: Study) -> str:
    """Return a digest of the runs' configurations, their data, our code and its libraries.

    Where anything is measured, so is the machine: what another one measured is not taken over.
    Claims and labels are no part of it: results are judged and drawn anew. Raise
    :exc:`ConfigError` where there is no data.
    """
    digest = hashlib.sha256(repr((versions(), _digest_code(), study.section.parts)).encode())
    if study.is_measured:
        digest.update(repr(describe_machine()).encode())
    for point in study.points:
        digest.update(point.config.model_dump_json().encode())
    for path in _data(study):
        file = path.stat()
        digest.update(f"{path} {file.st_mtime_ns} {file.st_size}\n".encode())
    return digest.hexdigest()


def _data(study: Study) -> Iterator[Path]:
    """Return the files that the study's streams are read from; synthetic streams have none."""
    streams = {stream.files for point in study.points for stream in point.config.streams}
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
