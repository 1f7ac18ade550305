"""What a run pays for saving itself, and for snapshots in virtual time: its time over a plain one.

    python -m benchmarks.saving [--turns 5] [--json]

In the clock: a simulation inline, from building its actors to its whole files; processor time.

Messages are small, which is the worst case: what is written down is paid by the message. Runs are
saved every second; snapshots of recovery come at their default interval, ten times in the virtual
second for which sources send. A plain run and the others take turns, after one that compiles.
"""

from __future__ import annotations

import argparse
import gc
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import joinsim as js
from actors.hosting.saved_run import SavedRun
from benchmarks.measure import Result, report
from scenarios.config import RecoveryConfig
from scenarios.plan import Plan
from scenarios.run import simulate

_EVERY_S = 1.0
_MOST = 1.1
_COLLECT_AFTER = 50_000
"""As the command has it (`joinsim.__main__`)."""

_BATCH_ROWS = 10
_CASES = {
    "spo_join, Q3": ("spo-q3", 6_000, {}),
    "split_join, nested loops": ("faults-crash", 5_000, {"faults": []}),
    "panjoin, equi-join": ("panjoin-equi", 15_000, {}),
    "kp_oij, W1": ("oij-w1", 5_000, {"parameters.batch_rows": 10}),
}
"""Of each: its scenario, the tuples of each stream, and what is changed."""


def measure(turns: int) -> list[Result]:
    """Return for every case what saving costs, and what snapshots in virtual time cost."""
    results = []
    for name, (scenario, rows, settings) in _CASES.items():
        settings = settings | {
            "rows": rows,
            "feeding.batch_rows": _BATCH_ROWS,
            "feeding.rate_tps": rows,
        }
        plan = js.scenario(scenario).with_settings(settings).prepare()
        plan = _with(plan, None)
        recovering = _with(plan, RecoveryConfig())
        _seconds(plan)
        ratios = []
        for _ in range(turns):
            plain_s = _seconds(plan)
            ratios.append((_seconds(plan, saved=True) / plain_s, _seconds(recovering) / plain_s))
        for what, values in zip(
            ("saved every second", "snapshots in virtual time"),
            zip(*ratios, strict=True),
            strict=True,
        ):
            figure = f"{what}, to neither: {name}"
            results.append(Result.of(figure, values, unit="x", target=_MOST, at_least=False))
    return results


def _with(plan: Plan, recovery: RecoveryConfig | None) -> Plan:
    return replace(plan, config=plan.config.model_copy(update={"recovery": recovery}))


def _seconds(plan: Plan, *, saved: bool = False) -> float:
    with TemporaryDirectory() as name, ExitStack() as open_:
        folder, disk = Path(name), None
        if saved:
            disk = open_.enter_context(SavedRun(folder / "saved", every_s=_EVERY_S))
        start = time.process_time()
        simulate(plan, folder, pairs=False, disk=disk)
        return time.process_time() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    gc.set_threshold(_COLLECT_AFTER)
    report("saving", measure(parser.parse_args().turns))


if __name__ == "__main__":
    main()
