"""A live run of a toy system on a cluster, as a program: ``ADDRESS PROCESSES COUNT GAP_NS``.

Prints on how many nodes and in which processes it is, "running" when it is, and how many results
there were.
"""

from __future__ import annotations

import os
import signal
import sys

from actors.hosting.live.live_run import LiveRun, LiveSystem
from actors.hosting.ray_cluster import ray, ray_cluster
from actors.hosting.ray_processes import RayProcesses
from actors.protocol import TIMER, ActorSpec, Progress
from tests.actors.meshes import labels
from tests.toys import Recorder, Sender, Worker


def whereabouts() -> tuple[str, int]:
    """Return this process's node and number."""
    return str(ray.get_runtime_context().get_node_id()), os.getpid()


def on_progress(at: Progress) -> None:
    print("running", flush=True)


def main() -> None:
    # A test run in the background of a shell ignores Ctrl-C, and hands that down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    address = sys.argv[1]
    processes, sent, gap_ns = map(int, sys.argv[2:])
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": sent, "gap_ns": gap_ns}),
        "worker": ActorSpec(actor=Worker, arguments={"port": "on"}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {"source": {"out": ("worker",)}, "worker": {"on": ("recorder",)}, "recorder": {}}
    homes = {name: place % processes for place, name in enumerate(specs)}
    codes = {port: code for code, port in enumerate(["out", "on", "start", TIMER])}
    with ray_cluster(address, processes=processes), RayProcesses(labels(processes)) as started:
        nodes, pids = zip(*started.everywhere(whereabouts), strict=True)
        print("nodes", len(set(nodes)), flush=True)
        print("pids", *pids, flush=True)
        system = LiveSystem(specs=specs, wiring=wiring, seed=1, homes=homes, room=4, codes=codes)
        run = LiveRun(started, system)
        run.run(on_progress)
        results = [entry for entry in run.entries() if isinstance(entry, list)]
    print("results", sum(map(len, results)), flush=True)


if __name__ == "__main__":
    main()
