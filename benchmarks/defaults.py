"""Nothing set, against the best size of messages set by hand: one query a system.

In the clock: as for all engines (`benchmarks.contest`), pairs counted. *By hand* are messages of
1,000, 4,000, 16,000 and 65,536 tuples, from sources and, where a topology has the parameter, from
its emitters; a system's best is the one of the greatest median. Queries and data are those of
scenarios; nothing else that these set applies. Semijoins, whose batches are their execution
intervals, the low-latency handshake join and Flink's interval join are left out.

How messages grow where nothing is set: `actors.source.Feeding`.

Run: ``python -m benchmarks.defaults [--works interval ...] [--engines inline live spark]
[--topologies kp_oij ...] [--turns 3] [--json]``
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.contest import Contender, engines_contest
from benchmarks.measure import Result, command_line, report
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.engines import Engine
from scenarios.engines.host_engines import Inline, Ray, SparkHosted
from topologies import find_topology

_SIZES = (1_000, 4_000, 16_000, 65_536)
_TARGET = 0.67
ENGINES: dict[str, Engine] = {"inline": Inline(), "live": Ray(), "spark": SparkHosted()}
_INEQUALITY = ("spo_join", "bchj", "chain_index", "b_plus_tree", "ie_join")
_LOOPS = ("nested_loop", "split_join", "join_matrix", "handshake_join", "scale_join")
_SHORT = {"bind.D": 500, "bind.W": 1_000}


class Work(NamedTuple):
    """What is joined: so many tuples of a scenario's streams."""

    scenario: str
    rows: int
    topologies: tuple[str, ...]
    settings: Mapping[str, Any] = {}
    """Keys of the scenario that are set to something else."""


WORKS = {
    "interval": Work("oij-w1", 200_000, ("kp_oij", "dp_oij", "hp_oij", "scale_oij", "split_oij")),
    "inequality": Work("spo-q3", 60_000, _INEQUALITY),
    "band": Work("pim-band", 200_000, ("ibwj", "panjoin")),
    "equality": Work("engines-equi", 60_000, ("hash_join", "panjoin")),
    "nested loops": Work("spo-q3", 20_000, _LOOPS),
    "short windows": Work("spo-q3", 200_000, (*_INEQUALITY, *_LOOPS), _SHORT),
}
"""The last one's windows are shorter than the messages that nothing set makes."""


def compare(work: str, topology: str, engine: str, turns: int) -> Result:
    """Return how many times as fast as the best by hand the default is."""
    config = _bare(WORKS[work], topology)
    contenders = [Contender(name="default", engine=ENGINES[engine])]
    for rows in _SIZES:
        settings = {"feeding.batch_rows": rows}
        if hasattr(find_topology(topology).parameters_type, "batch_rows"):
            settings["batch_rows"] = rows
        contenders.append(Contender(name=f"{rows:,}", engine=ENGINES[engine], settings=settings))
    title = f"{work}, {topology}, {engine}"
    rates = engines_contest(title, config, contenders, turns=turns, pairs=False)
    default, *by_hand = rates
    best = max(by_hand, key=lambda rate: rate.median)
    return Result.of(
        title,
        [rate / best.median for rate in (default.median, default.least, default.most)],
        unit="times",
        target=_TARGET,
        note=f"best: {best.name.rpartition(': ')[2]}, {best.median / 1e6:.3g} M tuples/s",
    )


def _bare(work: Work, topology: str) -> RunConfig:
    """Return the query and the data of a work's scenario, and nothing else that it sets."""
    config = scenario_files.change(scenario_files.load(work.scenario), work.settings)
    return RunConfig(
        name=config.name,
        query=config.query,
        bind=config.bind,
        streams=config.streams,
        rows=work.rows,
        topology=topology,
    )


def main() -> None:
    """Compare the chosen systems, and print a table."""
    parser = command_line(__doc__)
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--topologies", nargs="+", help="of these works; all")
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=["inline", "live"])
    parser.add_argument("--turns", type=int, default=3, help="of each size (3)")
    options = parser.parse_args()
    results = []
    for work in options.works:
        for topology in WORKS[work].topologies:
            if topology in (options.topologies or WORKS[work].topologies):
                for engine in options.engines:
                    results.append(compare(work, topology, engine, options.turns))
                    print(f"{results[-1].name}: {results[-1].median:.2f}", file=sys.stderr)
    ratios = [result.median for result in results]
    reached = Result.of("least of all", [min(ratios)], unit="times", target=_TARGET)
    middle = Result.of("median of all", [statistics.median(ratios)], unit="times")
    report("defaults over the best size by hand", [*results, reached, middle])


if __name__ == "__main__":
    main()
