"""A source of its own for each stream, where a system takes them one by one."""

from __future__ import annotations

from collections.abc import Callable

from actors.interval_join.source import StreamSource
from topologies.topology import Job


def add_stream_sources(job: Job, add: Callable[..., str]) -> list[str]:
    """Add a source for each stream of *job*, in the query's order; return their names.

    *add* takes a role, a name, a class and its arguments, as `ActorGraph.add` does.
    """
    return [
        add(
            "source",
            f"source.{name}",
            StreamSource,
            files=job.files,
            feeding=job.feeding,
            stream=stream,
            replica=0,
            replicas=1,
        )
        for stream, name in enumerate(job.query.streams)
    ]
