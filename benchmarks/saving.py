"""What a run pays for saving itself, and for snapshots in virtual time: its time over a plain one.

    python -m benchmarks.saving [--turns 5] [--seconds 1] [--json]

In the clock: a simulation inline, from building its actors to its whole files; processor time.

Each system runs with batches as its scenario has them, and with messages of ten tuples. Those are
the worst case: what is written down is paid by the message. Runs are saved every second; snapshots
of recovery come at their default interval, ten times in each virtual second for which sources send.
A plain run and the others take turns, after one that compiles. By default sources send for one such
second a stream, and runs take about a real one: they are saved once or not at all, so that most of
what saving costs there is writing answers.
"""

from __future__ import annotations

import gc
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import joinsim as js
from actors.hosting.saved_run import SavedRun
from benchmarks.measure import Result, command_line, report
from scenarios.config import RecoveryConfig
from scenarios.plan import Plan
from scenarios.run import simulate

_EVERY_S = 1.0
_MOST = 1.1
_COLLECT_AFTER = 50_000
"""As the command has it (`joinsim.__main__`)."""

_Settings = dict[str, Any]


class _Case(NamedTuple):
    """A scenario and what is changed of it.

    Attributes
    ----------
    rows, rows_of_small
        Tuples of each stream in a virtual second: with its own batches, and with small messages.
    settings, small
        Of both, and of small messages alone.
    """

    scenario: str
    rows: int
    rows_of_small: int
    settings: _Settings = {}  # noqa: RUF012
    small: _Settings = {}  # noqa: RUF012


_CASES = {
    "spo_join, Q3": _Case("spo-q3", 60_000, 6_000),
    "split_join, nested loops": _Case("faults-crash", 20_000, 5_000, {"faults": []}),
    "panjoin, equi-join": _Case("panjoin-equi", 150_000, 15_000),
    "kp_oij, W1": _Case("oij-w1", 1_000_000, 5_000, small={"parameters.batch_rows": 10}),
}


def measure(turns: int, seconds: int) -> list[Result]:
    """Return for every case what saving costs, and what snapshots in virtual time cost."""
    results = []
    for name, case in _CASES.items():
        results += _measure(name, case.scenario, case.rows, seconds, case.settings, turns)
    for name, case in _CASES.items():
        settings = case.settings | {"feeding.batch_rows": 10} | case.small
        name = f"{name}, messages of ten tuples"
        results += _measure(name, case.scenario, case.rows_of_small, seconds, settings, turns)
    return results


def _measure(
    name: str, scenario: str, rate_tps: int, seconds: int, settings: _Settings, turns: int
) -> list[Result]:
    settings = settings | {"rows": rate_tps * seconds, "feeding.rate_tps": rate_tps}
    plan = js.scenario(scenario).with_settings(settings).prepare()
    plan = plan.with_settings(recovery=None)
    recovering = plan.with_settings(recovery=RecoveryConfig())
    _seconds(plan)
    ratios = []
    for _ in range(turns):
        plain_s = _seconds(plan)
        ratios.append((_seconds(plan, saved=True) / plain_s, _seconds(recovering) / plain_s))
    return [
        Result.of(f"{what}, to neither: {name}", values, unit="x", target=_MOST, at_least=False)
        for what, values in zip(
            ("saved every second", "snapshots in virtual time"),
            zip(*ratios, strict=True),
            strict=True,
        )
    ]


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
    parser = command_line(__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument(
        "--seconds", type=int, default=1, help="virtual, for which sources send, a stream"
    )
    arguments = parser.parse_args()
    gc.set_threshold(_COLLECT_AFTER)
    report("saving", measure(arguments.turns, arguments.seconds))


if __name__ == "__main__":
    main()
