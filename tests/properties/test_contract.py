"""Every topology of the registry keeps to its contract, on random runs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from joinsim import checks
from joinsim.checks import Check, check_topology
from scenarios.worlds.world import World
from tests.properties.families import examples_of
from tests.waiting import read_line
from topologies import TOPOLOGIES

EXAMPLES = {"its answer is exactly right": 100, "listing pairs changes nothing": 15}
OTHERS, SPO_JOIN = 10, 20
ELSEWHERE = pytest.mark.xdist_group("elsewhere")
"""The checks that share the processes below."""


def contract() -> Iterator[Check]:
    for name, topology in TOPOLOGIES.items():
        for place, check in enumerate(check_topology(name)):
            begins = (n for text, n in EXAMPLES.items() if check.name.startswith(text))
            examples = next(begins, SPO_JOIN if name == "spo_join" else OTHERS)
            tried = list(check_topology(name, examples=examples_of(topology, examples)))
            group = [ELSEWHERE] if check.name.startswith("other processes") else []
            yield pytest.param(  # type: ignore[misc]
                tried[place], id=f"{name}: {check.name}", marks=group
            )


_ANSWER_ALL = """
import sys
from joinsim import checks
for line in sys.stdin:
    sys.argv[1:] = line.rstrip("\\n").split("\\t")
    checks._answer()
    print("answered", flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def one_process_answers_for_all_systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ask the same other process about every system, one for each seed of hashes.

    Starting one takes seconds. How a check starts its own is tested beside `joinsim.checks`.
    """
    folder, answering = tmp_path_factory.mktemp("elsewhere"), dict[str, subprocess.Popen[str]]()

    def digests(path: str, worlds: list[World], hash_seed: str) -> list[str | None]:
        asked, answered = folder / "worlds", folder / "digests"
        asked.write_bytes(pickle.dumps((path, worlds)))
        if hash_seed not in answering:
            answering[hash_seed] = _start_answering(hash_seed, folder)
        process = answering[hash_seed]
        assert process.stdin
        process.stdin.write(f"{asked}\t{answered}\n")
        process.stdin.flush()
        assert read_line(process) == "answered\n", (folder / f"stderr-{hash_seed}").read_text()
        found: list[str | None] = json.loads(answered.read_text(encoding="utf-8"))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_digests_elsewhere", digests)
        yield
    for process in answering.values():
        process.communicate(timeout=60)


def _start_answering(hash_seed: str, folder: Path) -> subprocess.Popen[str]:
    variables = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (folder / f"stderr-{hash_seed}").open("w") as stderr:
        return subprocess.Popen(
            [sys.executable, "-c", _ANSWER_ALL],
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )


@pytest.mark.parametrize("check", list(contract()))
def test_it_keeps_to_its_contract(check: Check) -> None:
    check()
