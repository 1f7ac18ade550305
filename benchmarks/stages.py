"""Systems inside Spark in one stage of its plan, and in as many as their graphs can be cut into.

In the clock: from prepared files to results on disk or counted, the first trigger included; see
`benchmarks.contest`. Between stages tuples go through Spark's exchanges, and every stage has its
state and its tasks; in one, a single core does all the work. On two cores one stage is what
`compare --engines` takes.

Run: ``python -m benchmarks.stages [--turns 3] [--json]``
"""

from __future__ import annotations

from benchmarks.contest import Contender, engines_contest
from benchmarks.measure import Result, command_line, report
from scenarios import scenario_files
from scenarios.engines.host_engines import SparkHosted

_ONE, _SEVERAL = "one stage", "several"
_WORKS = (
    ("engines-interval", "kp_oij", True),
    ("engines-interval", "dp_oij", True),
    ("engines-equi", "hash_join", True),
    ("engines-q3", "spo_join", False),
    ("engines-q3", "split_join", False),
)
"""A scenario's query, a system, and whether pairs are written; else they are counted."""


def main() -> None:
    """Measure, compare and print."""
    parser = command_line(__doc__)
    parser.add_argument("--turns", type=int, default=3, help="how often each is run (3)")
    options = parser.parse_args()
    contenders = [
        Contender(name=_ONE, engine=SparkHosted(fold=True)),
        Contender(name=_SEVERAL, engine=SparkHosted(fold=False)),
    ]
    results: list[Result] = []
    for scenario, topology, pairs in _WORKS:
        config = scenario_files.change(scenario_files.load(scenario), {"topology": topology})
        results += engines_contest(
            f"{scenario}, {topology}",
            config,
            contenders,
            turns=options.turns,
            pairs=pairs,
            over=[(_ONE, _SEVERAL, None)],
        )
    report("systems inside Spark, by stages of its plan", results)


if __name__ == "__main__":
    main()
