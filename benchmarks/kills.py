"""Whether runs survive that their processes are killed, at random moments: real SIGKILLs.

    python -m benchmarks.kills --kills 50 --seed 1 [--what process,live,driver,inline,raylet,...]

``process``: of Ray, in a virtual run, which goes on to the same digest. ``live``: of Ray, in a live
run of one of three systems with recovery, which goes on to the right pairs. ``driver``: of a
virtual run, which ``joinsim run --resume`` goes on with to the same digest, or says that nothing
was saved yet; ``inline``: the same without Ray. ``raylet`` and ``head`` of Ray: the run goes on, or
stops with exit code 3 and one message within 30 s. So it is with Spark: ``preparing``, its Java
process while it prepares a stream, of which nothing half is left; ``java`` and ``worker``, its Java
process and a Python worker while operators run inside it. Of none anything stays behind. Prints a
line for each kill, and what a command said that stopped; the exit code is 1 if one went wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from scenarios.run_directory import UNFINISHED
from spark_bridge.prepared import load_stream
from tests.end_to_end.stopping import (
    LIVE,
    QUERIES,
    ROWS,
    Command,
    Moment,
    command,
    in_spark,
    java_of,
    java_running,
    on_ray,
    running,
    running_live,
    serves,
    started_at,
    to_prepare,
    workers_of,
)

_SIZE = ("--rows", "20000", "--set", "feeding.batch_rows=10")
KILLS = {
    "process": 5, "live": 3, "driver": 2, "inline": 2, "raylet": 1, "head": 1,
    "preparing": 1, "java": 1, "worker": 1,
}  # fmt: skip
"""What is killed, and how often relative to the others."""
NAMES = {"raylet": "raylet", "head": "gcs_server"}
_GONE_S, _STOPPED_S, _RUN_S = 10, 30, 600
_LOOK_S = 0.02
_LATEST_S = 6.0
"""A kill comes so long after the run has begun, or after the one before, at the most."""
_KILLS_A_RUN = 2
"""A run gives up when its processes are lost three times in turn without getting farther."""


class Kills:
    """Runs of one join in a *folder*, undisturbed and killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._rng = folder, random.Random(seed)
        self._arguments = on_ray(folder, *_SIZE)

    @cached_property
    def _digest(self) -> str:
        """That of the undisturbed run."""
        with self._start("--backend", "inline") as run:
            out, err = run.communicate(timeout=_RUN_S)
        if run.returncode:
            sys.exit(f"the undisturbed run has failed: {err}")
        return str(json.loads(out)["digest"])

    def of(self, what: str) -> Iterator[str]:
        """Run once and kill *what*; yield how that went after each kill: ``exact`` or why not."""
        if what == "process":
            yield from self._processes(self._arguments, self._folder, running)
        elif what == "live":
            topology = self._rng.choice(list(QUERIES))
            with TemporaryDirectory(prefix="joinsim-kills-") as name:
                arguments = on_ray(Path(name), *_SIZE, *LIVE, topology=topology)
                yield from self._processes(arguments, Path(name), running_live)
        elif what in NAMES:
            yield from self._cluster(NAMES[what])
        elif what in ("preparing", "java", "worker"):
            with TemporaryDirectory(prefix="joinsim-kills-") as name:
                yield from self._spark(what, Path(name))
        else:
            yield from self._driver("inline" if what == "inline" else "ray")

    def _start(self, *more: str) -> AbstractContextManager[Command]:
        return command([*self._arguments, *more], self._folder)

    def _wait(self) -> None:
        time.sleep(self._rng.random() * _LATEST_S)

    def _processes(self, arguments: list[str], folder: Path, moment: Moment) -> Iterator[str]:
        """Kill one process of Ray, from a *moment* of the run on, and then another."""
        kills = 0
        with command(arguments, folder) as run:
            started = set(started_at(moment, run, folder))
            driver = psutil.Process(run.pid)
            self._wait()
            while run.poll() is None and kills < _KILLS_A_RUN:
                with suppress(psutil.Error):
                    below = driver.children(recursive=True)
                    started |= set(below)
                    serving = [one for one in below if serves(one)]
                    if serving:
                        self._rng.choice(serving).kill()
                        kills += 1
                        self._wait()
                time.sleep(0.1)
            ended = self._ended(run, started)
        yield from [ended] * kills

    def _driver(self, backend: str) -> Iterator[str]:
        """Kill a run's driver and resume the run, unless it had finished before the kill."""
        with self._start("--backend", backend, "--save-every", "1ms") as run:
            started = started_at(running, run, self._folder)
            self._wait()
            run.kill()
            run.communicate()
        if left := _left(started):
            yield left
        elif (self._folder / "run" / UNFINISHED).exists():
            with command(["run", "--resume", "run", "--json"], self._folder) as run:
                yield self._goes_on_or_stops(run, [], self._judge)

    def _cluster(self, name: str) -> Iterator[str]:
        """Kill a process of a run's cluster, unless the run has finished before the kill."""
        with self._start() as run:
            started = started_at(running, run, self._folder)
            self._wait()
            if process := _named(started, name):
                process.kill()
                yield self._goes_on_or_stops(run, started, self._judge)
            else:
                run.communicate()

    def _spark(self, what: str, folder: Path) -> Iterator[str]:
        """Kill a process of Spark as soon as there is one, at a moment of the run or later."""
        preparing, kills = what == "preparing", 0
        with command((to_prepare if preparing else in_spark)(folder), folder) as run:
            process = psutil.Process(run.pid)
            started = set(started_at(java_running, run, folder))
            self._wait()
            while run.poll() is None and not kills:
                with suppress(psutil.Error):
                    started |= set(process.children(recursive=True))
                    java = java_of(process)
                    below = workers_of(process) if what == "worker" else [java] if java else []
                    if below:
                        self._rng.choice(below).kill()
                        kills += 1
                time.sleep(_LOOK_S)
            ended = self._goes_on_or_stops(run, started, _judge_spark)
        whole = [load_stream(stream).rows == ROWS for stream in (folder / "prepared").glob("[!.]*")]
        yield from [ended if all(whole) else "half a stream"] * kills

    def _goes_on_or_stops(
        self, run: Command, started: Iterable[psutil.Process], judge: Callable[[str], str]
    ) -> str:
        began_s = time.monotonic()
        out, err = run.communicate(timeout=_RUN_S)
        took_s = time.monotonic() - began_s
        if left := _left(started):
            return left
        if not run.returncode:
            return judge(out)
        said = err
        if out.startswith("{"):  # of a comparison, of which one engine failed
            (failed,) = json.loads(out)["failed"]
            out, said = "", f"joinsim: {failed['reason']}"
        if (run.returncode, out) != (3, "") or said.count("joinsim: ") != 1 or "Traceback" in err:
            return f"exit code {run.returncode}, {out!r} and {err[-500:]!r}"
        print(f"     {said.strip()}")
        return "stopped" if took_s < _STOPPED_S else f"stopped after {took_s:.0f} s"

    def _ended(self, run: Command, started: Iterable[psutil.Process]) -> str:
        out, err = run.communicate(timeout=_RUN_S)
        if left := _left(started):
            return left
        if run.returncode:
            return f"exit code {run.returncode}: {err[-500:]!r}"
        return self._judge(out)

    def _judge(self, out: str) -> str:
        try:
            summary = json.loads(out)
        except ValueError:
            return f"not one JSON object on stdout: {out[:200]!r}"
        if not summary["verdict"]["exact"]:
            return "not exact"
        live = summary["clock"] == "live"  # which has no digest
        return "exact" if live or summary["digest"] == self._digest else "another digest"


def _judge_spark(out: str) -> str:
    """Judge a comparison by its verdict; a stream that was prepared is looked at on disk."""
    return "exact" if json.loads(out).get("passed", True) else "not exact"


def _named(processes: Iterable[psutil.Process], name: str) -> psutil.Process | None:
    """Return the one called *name*; None where it has ended."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # it has ended since it was listed
            if process.name() == name:
                return process
    return None


def _left(started: Iterable[psutil.Process]) -> str:
    """Return what is left of the processes that a run has *started*, if anything is."""
    _, left = psutil.wait_procs(list(started), timeout=_GONE_S)
    return f"left behind: {', '.join(str(one) for one in left)}" if left else ""


def main() -> None:
    """Kill, and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--what", default=",".join(KILLS))
    options = parser.parse_args()
    names = options.what.split(",")
    if unknown := [name for name in names if name not in KILLS]:
        parser.error(f"--what {','.join(unknown)}: there are {', '.join(KILLS)}")
    rng, outcomes, kills = random.Random(options.seed), Counter[tuple[str, str]](), 0
    with TemporaryDirectory(prefix="joinsim-kills-") as folder:
        runs = Kills(Path(folder), options.seed)
        while kills < options.kills:
            (what,) = rng.choices(names, [KILLS[name] for name in names])
            for outcome in runs.of(what):
                kills += 1
                outcomes[what, outcome] += 1
                print(f"{kills:4} {what:8} {outcome}", flush=True)
    for (what, outcome), count in sorted(outcomes.items()):
        print(f"{count:4} x {what}: {outcome}")
    sys.exit(any(outcome not in ("exact", "stopped") for _, outcome in outcomes))


if __name__ == "__main__":
    main()
