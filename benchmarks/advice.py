"""Advice held against running everything: how good its picks are, and what they cost.

A setting is a query, its data and a network. For each, `scenarios.topology_search` looks for
the system of highest throughput; then every candidate runs over all tuples. *Regret* is by how much
the best of these is faster than the one that was picked, as a share of the best. Cost is that of
the search over that of running all: in tuples simulated, and in seconds of processor time.

In the clock: of the search all, from its candidates to its pick, and the verdict on what it ran
over all tuples; of running everything the runs, without verdicts.

Data that no test reads are marked *new*. The figures are simulated, and do not depend on the
machine; the seconds do.

Run: ``python -m benchmarks.advice [--rows 8000] [--settings 33] [--json]``; it reads the data sets
of ``JOINSIM_DATA``, and prints a line for each setting on stderr.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import Result, command_line, report
from joinsim._calls import of_query
from scenarios.scenario_files import ConfigError
from scenarios.streams import find_file
from scenarios.topology_search import Search, candidates

NETWORKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rack", {"preset": "rack"}),
    ("data-centre", {"preset": "data-centre"}),
    ("slow links", {"latency": "25 ms", "bandwidth": "20 Mbps"}),
)
MACHINES = 4
REGRET, COST = 0.1, 0.25
"""Targets: within a tenth of the best, for a quarter of the cost."""
_UNLIMITED_S = 1e6
_WARM_ROWS = 200
MS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A query and its data.

    Attributes
    ----------
    name, query
        What is joined.
    files
        Stream to its file and the column of its event time; a file that is named twice is halved,
        tuple by tuple.
    new
        Whether no test reads the data.
    """

    name: str
    query: str
    files: dict[str, tuple[str, str]]
    new: bool = False

    def tables(self, rows: int) -> dict[str, pa.Table]:
        """Return *rows* tuples of each stream, from when all of them have begun."""
        names = [file for file, _ in self.files.values()]
        tables = {}
        for place, (stream, (file, clock)) in enumerate(self.files.items()):
            table = pq.read_table(find_file((f"{file}.parquet",)))
            ts = table[clock].to_numpy()
            ts = ts.astype("datetime64[ns]").astype(np.int64) if ts.dtype.kind == "M" else ts * MS
            columns = {
                name.replace("id.orig_h", "host"): table[name] for name in table.column_names
            }
            table = pa.table(columns | {"ts": ts.astype(np.int64)})
            half = names.count(file) > 1
            tables[stream] = table.take(np.arange(place, len(table), 2)) if half else table
        begin = max(table["ts"][0].as_py() for table in tables.values())
        return {
            stream: table.filter(pc.field("ts") >= begin).slice(0, rows)
            for stream, table in tables.items()
        }


def within(a: str, b: str, key: str, length: str) -> str:
    """Return the interval join of two streams on a key."""
    return (
        f"SELECT * FROM {a}, {b} WHERE {a}.{key} = {b}.{key} AND {b}.ts "
        f"BETWEEN {a}.ts - INTERVAL '{length}' AND {a}.ts + INTERVAL '{length}'"
    )


WINDOW = "WINDOW AS (SLIDE INTERVAL '250' ON '1000')"
SSE = {"C": ("stock_sse_alliancedb_cj_60s", "ts"), "S": ("stock_sse_alliancedb_sb_60s", "ts")}
APACHE, BTS = "weblog_apache_semicomplete_4days", "flights_us_bts_2001"
TRADES, QUOTES = "stock_us_trade_ticks", "stock_us_quote_ticks_0930_1200"

JOINS = (
    Joined(name="orders x trades", query=within("C", "S", "key", "20 ms"), files=SSE, new=True),
    Joined(
        name="trades x quotes",
        query=within("T", "Q", "symbol", "50 ms"),
        files={"T": (TRADES, "time"), "Q": (QUOTES, "time")},
    ),
    Joined(
        name="flights, later and shorter",
        query=f"SELECT * FROM F WHERE F.delay1 > F.delay2 AND F.distance1 < F.distance2 {WINDOW}",
        files={"F": (BTS, "date")},
        new=True,
    ),
    Joined(
        name="trips, longer yet cheaper",
        query="SELECT * FROM T WHERE T.trip_distance1 > T.trip_distance2 "
        f"AND T.fare_amount1 < T.fare_amount2 {WINDOW}",
        files={"T": ("taxi_nyc_yellow_monthly_sample", "pickup_datetime")},
    ),
    Joined(
        name="requests of a client",
        query=within("A", "B", "clientID", "1 hours"),
        files={"A": (APACHE, "time"), "B": (APACHE, "time")},
        new=True,
    ),
    Joined(
        name="dns x ssl of a host",
        query=within("D", "L", "host", "1 s"),
        files={"D": ("net_zeek_dns", "ts"), "L": ("net_zeek_ssl", "ts")},
    ),
    Joined(
        name="pickups near each other",
        query="SELECT * FROM T WHERE ABS(T.pickup_longitude1 - T.pickup_longitude2) <= 0.01 "
        f"AND ABS(T.pickup_latitude1 - T.pickup_latitude2) <= 0.01 {WINDOW}",
        files={"T": ("taxi_nyc_2016_duration_sample", "pickup_datetime")},
        new=True,
    ),
    Joined(
        name="power, R x S",
        query="SELECT * FROM R, S WHERE R.Global_active_power > S.Global_active_power "
        f"AND R.Voltage < S.Voltage {WINDOW}",
        files={
            "R": ("power_household_uci_1min", "date_time"),
            "S": ("power_household_uci_1min", "date_time"),
        },
    ),
    Joined(
        name="orders x trades, windows",
        query=f"SELECT * FROM C, S WHERE C.key = S.key {WINDOW}",
        files=SSE,
        new=True,
    ),
    Joined(
        name="trades of a symbol",
        query=f"SELECT * FROM T, Q WHERE T.symbol = Q.symbol {WINDOW}",
        files={"T": (TRADES, "time"), "Q": (QUOTES, "time")},
    ),
    Joined(
        name="flights of an airport",
        query=within("A", "B", "origin", "1 min"),
        files={"A": (BTS, "date"), "B": (BTS, "date")},
        new=True,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one setting; *tuples* and *seconds* of the search, and of running all."""

    name: str
    new: bool
    candidates: int
    picked: str
    best: str
    regret: float
    tuples: tuple[int, int]
    seconds: tuple[float, float]


def hold_against_all(joined: Joined, network: dict[str, Any], rows: int, name: str) -> Outcome:
    """Search, then run every candidate over all tuples."""
    scenario = of_query(joined.query, joined.tables(rows), None, time="ts", network=network)
    streams = scenario.streams
    assert streams is not None

    def search() -> Search:
        return Search(
            config=scenario.config,
            prepare=lambda *_: streams,
            goals=["throughput"],
            rate_tps=None,
            rows=max(stream.rows for stream in streams),
            budget_s=_UNLIMITED_S,
        )

    chosen, _ = candidates(scenario.config, lambda *_: streams, machines=MACHINES)
    halving, everything = search(), search()
    if network == NETWORKS[0][1]:
        # The first run of each system compiles, or loads, its kernels: neither is to pay for it.
        search().simulate_all(chosen, _WARM_ROWS, "warm")
    begun_s = time.process_time()
    picked = halving.run(chosen)[0]
    searched_s = time.process_time()
    everything.give_up = False
    ran = everything.simulate_all(chosen, everything.rows, "all")
    all_s = time.process_time() - searched_s
    tps = {one.label: one.values("throughput")[0] for one in ran if one.saturated}
    best = max(tps, key=lambda label: tps[label])
    return Outcome(
        name=name,
        new=joined.new,
        candidates=len(chosen),
        picked=picked.label,
        best=best,
        regret=1 - picked.values("throughput")[0] / tps[best],
        tuples=(halving.spent.tuples, everything.spent.tuples),
        seconds=(searched_s - begun_s, all_s),
    )


def outcomes(rows: int, most: int) -> Iterator[Outcome]:
    """Yield what came of each setting, network by network."""
    settings = [(one, *network) for network in NETWORKS for one in JOINS]
    for joined, called, network in settings[:most]:
        begun = time.monotonic()
        one = hold_against_all(joined, network, rows, f"{joined.name}, {called}")
        took = time.monotonic() - begun
        print(
            f"{one.name}: {one.candidates} candidates, picked {one.picked}, best {one.best}, "
            f"regret {one.regret:.1%}, cost {one.tuples[0] / one.tuples[1]:.1%} of tuples, "
            f"{one.seconds[0] / one.seconds[1]:.1%} of seconds ({took:.0f} s)",
            file=sys.stderr,
            flush=True,
        )
        yield one


def main() -> None:
    """Print the figures over all settings."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--settings", type=int, default=len(NETWORKS) * len(JOINS))
    arguments = parser.parse_args()
    try:
        found = list(outcomes(arguments.rows, arguments.settings))
    except ConfigError as error:  # its data is not here
        print(f"advice is left out: {error}", file=sys.stderr)
        return
    within_10 = sum(one.regret <= REGRET for one in found)
    note = f"{len(found)} settings, {sum(one.new for one in found)} on new data"
    costs: dict[str, list[tuple[float, float]]] = {
        "tuples": [one.tuples for one in found],
        "seconds": [one.seconds for one in found],
    }
    report(
        "advice beside running everything",
        [
            Result.of(
                "picked within 10 % of the best",
                [within_10 / len(found)],
                unit="of settings",
                target=1.0,
                note=note,
            ),
            Result.of(
                "regret", [one.regret for one in found], unit="", target=REGRET, at_least=False
            ),
            *(
                Result.of(
                    f"cost, {unit}, {of}",
                    [cost],
                    unit="",
                    target=COST,
                    at_least=False,
                )
                for unit, spent in costs.items()
                for of, cost in (
                    (
                        "all settings together",
                        sum(one for one, _ in spent) / sum(every for _, every in spent),
                    ),
                    ("the dearest setting", max(one / every for one, every in spent)),
                )
            ),
            Result.of(
                "candidates",
                [statistics.fmean([one.candidates for one in found])],
                unit="a setting",
            ),
        ],
    )


if __name__ == "__main__":
    main()
