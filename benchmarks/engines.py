"""Stream joins on every engine: the same prepared files, equal pairs.

In the clock: from prepared files to pairs in files, or counted where it says so, a first trigger
included; see `benchmarks.contest`.

*W1* is the keyed interval join of `benchmarks.interval_work`, 2 x 1,000,000 tuples, with its two
variants (within a second; one hot key). *Trades and quotes* is half an hour of a trading day,
quotes of the same symbol within 100 ms, at every engine's defaults, as somebody's own query would
run; inside Spark in a session that starts for it, and in one that has run it once (*warm*). *Q3*
joins taxi trips over windows by count. *Stages* runs systems inside Spark in one stage of its plan,
which a single core does, and in as many as their graphs can be cut into, between which tuples go
through Spark's exchanges. On W1 and Q3 our engines have the settings of the table, live ones few
and large messages; DuckDB and Polars join by buckets, native Spark has RocksDB, Flink one ordered
file a stream; engines inside Spark take 500,000 tuples at a time.

What bounds them: live Ray its processes' time and transport; operators inside Spark what Spark
takes a trigger, some tenths of a second whatever it holds, the first some seconds; native Spark its
state, a row at a time; Flink its rows as objects, one by one.

Run: ``python -m benchmarks.engines [--works W1 ...] [--rows 1000000] [--turns 5] [--quick]
[--json]``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.contest import HUGE_PAGES, Contender, engines_contest
from benchmarks.interval_work import AT_FULL_SPEED, IntervalWork
from benchmarks.measure import Result, command_line, report
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.engines.embedded_engines import DuckDB, Polars
from scenarios.engines.flink_engine import Flink
from scenarios.engines.host_engines import Inline, Ray, SparkHosted, SparkNative
from scenarios.scenario_files import ConfigError

_ALONE = {"replicas": 1, "batch_rows": 16_384, "feeding.batch_rows": 32_768}
_IN_SPARK = {"replicas": 2, "batch_rows": 25_000, "linger_turns": 0}
_TRADES = {
    "name": "trades-and-quotes",
    "query": "SELECT * FROM trades, quotes WHERE trades.symbol = quotes.symbol "
    "AND quotes.ts BETWEEN trades.ts - INTERVAL '100 ms' AND trades.ts + INTERVAL '100 ms'",
    "streams": [
        {
            "name": name,
            "files": [file],
            "time": "time",
            "where": "time >= '2013-10-08 09:30:00' AND time < '2013-10-08 10:00:00'",
        }
        for name, file in (
            ("trades", "stock_us_trade_ticks.parquet"),
            ("quotes", "stock_us_quote_ticks_0930_1200.parquet"),
        )
    ],
}

INLINE = Contender(name="inline, one process", engine=Inline(), settings=_ALONE)
LIVE = Contender(
    name="live Ray, two processes", engine=Ray(), settings=AT_FULL_SPEED | {"processes": 2}
)
LIVE_ALONE = Contender(
    name="live Ray, one process", engine=Ray(), settings=AT_FULL_SPEED | {"processes": 1}
)
IN_SPARK = Contender(name="operators inside Spark", engine=SparkHosted(), settings=_IN_SPARK)
EMBEDDED = (
    Contender(name="DuckDB, one thread", engine=DuckDB(threads=1)),
    Contender(name="DuckDB, all cores", engine=DuckDB()),
    Contender(name="Polars, one thread", engine=Polars(threads=1)),
    Contender(name="Polars, all cores", engine=Polars()),
)
_STAGES = (
    ("engines-interval", "kp_oij", True),
    ("engines-interval", "dp_oij", True),
    ("engines-equi", "hash_join", True),
    ("engines-q3", "spo_join", False),
    ("engines-q3", "split_join", False),
)
"""A scenario's query, a system, and whether pairs are written; else they are counted."""
NATIVE = Contender(name="native Spark", engine=SparkNative())
FLINK = Contender(name="Flink", engine=Flink())

_LIVE_OVER_EMBEDDED = (
    (LIVE.name, "DuckDB, all cores", 1.2),
    (LIVE.name, "Polars, all cores", 1.2),
    (INLINE.name, "DuckDB, one thread", None),
    (INLINE.name, "Polars, one thread", None),
)


def w1(options: argparse.Namespace) -> list[Result]:
    """Measure W1, pairs in files, on all engines, and counted on those that take seconds."""
    config = _interval(IntervalWork.of("W1", options.rows))
    fast = [INLINE, LIVE_ALONE, LIVE, *EMBEDDED]
    results = [
        result
        for title, pairs in (("W1", True), ("W1, counted", False))
        for result in engines_contest(
            title, config, fast, turns=options.turns, pairs=pairs, over=_LIVE_OVER_EMBEDDED
        )
    ]
    if options.quick:
        return results
    slow = [LIVE, IN_SPARK, NATIVE, FLINK]
    over = tuple((one.name, other.name, None) for one in slow[:2] for other in slow[2:])
    return results + engines_contest(
        "W1, beside streaming engines",
        config,
        slow,
        turns=min(3, options.turns),
        pairs=True,
        over=over,
    )


def variants(options: argparse.Namespace) -> list[Result]:
    """Measure W1 within a second, and with a hot key, pairs in files."""
    works = (
        IntervalWork.of("one second", options.rows, within_ms=1_000),
        IntervalWork.of("hot key", options.rows, hot=True),
    )
    engines = [INLINE, LIVE, *EMBEDDED]
    return [
        result
        for work in works
        for result in engines_contest(
            work.name,
            _interval(work),
            engines,
            turns=options.turns,
            pairs=True,
            over=_LIVE_OVER_EMBEDDED,
        )
    ]


def trades_and_quotes(options: argparse.Namespace) -> list[Result]:
    """Measure somebody's own query, pairs in files, nothing set."""
    config = scenario_files.build(_TRADES, where="trades and quotes")
    live = Contender(name="live Ray, two processes, defaults", engine=Ray())
    inline = Contender(name="inline, defaults", engine=Inline())
    hosted = Contender(name="operators inside Spark, defaults", engine=SparkHosted())
    over = [(live.name, "DuckDB, all cores", 1.0)]
    title = "trades and quotes"
    results = engines_contest(
        title, config, [inline, live, *EMBEDDED], turns=options.turns, pairs=True, over=over
    )
    if options.quick:
        return results
    warm_hosted = Contender(name=f"{hosted.name}, warm", engine=SparkHosted(warm=True))
    warm_native = Contender(name=f"{NATIVE.name}, warm", engine=SparkNative(warm=True))
    return results + engines_contest(
        f"{title}, in Spark",
        config,
        [hosted, NATIVE, warm_hosted, warm_native],
        turns=min(3, options.turns),
        pairs=True,
        over=[(hosted.name, NATIVE.name, 5.0), (warm_hosted.name, warm_native.name, 5.0)],
    )


def q3(options: argparse.Namespace) -> list[Result]:
    """Measure Q3 over windows of 10,000 of 100,000 trips, pairs counted."""
    config = scenario_files.change(
        scenario_files.load("spo-q3"), {"rows": 100_000, "feeding.batch_rows": 5_000}
    )
    live = Contender(name="live Ray, two processes", engine=Ray(), settings={"processes": 2})
    hosted = Contender(
        name="operators inside Spark", engine=SparkHosted(), settings={"topology": "ie_join"}
    )
    inline = Contender(
        name="inline, one process", engine=Inline(), settings={"topology": "ie_join"}
    )
    results = engines_contest(
        "Q3, counted",
        config,
        [inline, live, *EMBEDDED],
        turns=options.turns,
        pairs=False,
        over=[(inline.name, "DuckDB, one thread", None), (live.name, "DuckDB, all cores", None)],
    )
    if options.quick:
        return results
    return results + engines_contest(
        "Q3, counted, in Spark",
        config,
        [hosted, NATIVE],
        turns=min(3, options.turns),
        pairs=False,
        over=[(hosted.name, NATIVE.name, 5.0)],
    )


def stages(options: argparse.Namespace) -> list[Result]:
    """Measure systems inside Spark in one stage of its plan over several."""
    if options.quick:
        return []
    one = Contender(name="one stage", engine=SparkHosted(fold=True))
    several = Contender(name="several", engine=SparkHosted(fold=False))
    return [
        result
        for scenario, topology, pairs in _STAGES
        for result in engines_contest(
            f"{scenario}, {topology}",
            scenario_files.change(scenario_files.load(scenario), {"topology": topology}),
            [one, several],
            turns=min(3, options.turns),
            pairs=pairs,
            over=[(one.name, several.name, None)],
        )
    ]


WORKS = {
    "W1": w1,
    "variants": variants,
    "trades": trades_and_quotes,
    "Q3": q3,
    "stages": stages,
}


def _interval(work: IntervalWork) -> RunConfig:
    settings: Mapping[str, Any] = {"rows": len(work.ts[0]), **work.settings}
    return scenario_files.change(scenario_files.load("oij-w1"), settings)


def main() -> None:
    """Run the chosen works, and print a table of each."""
    parser = command_line(__doc__)
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--rows", type=int, default=1_000_000, help="of W1 a stream (1000000)")
    parser.add_argument("--turns", type=int, default=5, help="of each engine (5); in Spark 3")
    parser.add_argument("--quick", action="store_true", help="leave Spark and Flink out")
    options = parser.parse_args()
    for name in options.works:
        try:
            results = WORKS[name](options)
        except ConfigError as error:  # its data is not here
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        if results:
            report(f"{name} on every engine", results)
    if HUGE_PAGES.exists() and not options.json:
        print(f"huge pages: {HUGE_PAGES.read_text().strip()}")


if __name__ == "__main__":
    main()
