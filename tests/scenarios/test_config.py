"""The rows ``[[faults]]`` of a scenario: what they mean, and what is said of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from netsim.faults import ActorFault, Fault, LinkFault
from netsim.network import NetworkError
from scenarios.config import RunConfig
from scenarios.plan import check_names
from scenarios.scenario_files import ConfigError, build, change


def configured(*faults: dict[str, Any], **keys: Any) -> RunConfig:
    return build({"query": "q", "streams": (), "faults": faults} | keys, where="x.toml")


def rows_of(config: RunConfig) -> list[Fault]:
    return [row for fault in config.faults for row in fault.rows()]


def test_rows_are_read_with_their_units() -> None:
    config = configured(
        {"kind": "reorder", "rate": 0.2, "delay": "3 ms", "receiver": "joiner.*", "start": "1 s"},
        {"kind": "skew", "offset": "-3 us", "actor": "sink"},
        {"kind": "pause", "end": "1 ms", "every": "1 s", "random": True},
    )
    assert rows_of(config) == [
        LinkFault(kind="reorder", rate=0.2, delay_ns=3_000_000, receiver="joiner.*", from_ns=10**9),
        ActorFault(kind="skew", offset_ns=-3_000, actor="sink"),
        ActorFault(kind="pause", to_ns=10**6, every_ns=10**9, random=True),
    ]
    # As a replay reads them.
    assert build(config.model_dump(mode="json"), where="run.json") == config
    assert change(config, {"seed": 7}).faults == config.faults


def test_between_is_both_ways() -> None:
    config = configured({"kind": "partition", "between": ["a", "b"], "end": "1 s"})
    ways = [(row.sender, row.receiver) for row in rows_of(config) if isinstance(row, LinkFault)]
    assert ways == [("a", "b"), ("b", "a")]
    # Between all and all, each way is named once.
    assert len(rows_of(configured({"kind": "loss", "rate": 0.1}))) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"kind": "los"}, r"faults\.0\.kind = 'los': did you mean 'loss'\? there are loss, dup"),
        ({"rate": 0.1}, r"faults\.0\.kind: is missing"),
        ({"kind": "loss", "rat": 0.1}, r"rat: there is no such key; did you mean 'rate'\?"),
        ({"kind": "loss", "rate": 1}, r"faults\.0\.loss\.rate = 1: input should be less than 1"),
        ({"kind": "partition"}, "a partition needs an end"),
        ({"kind": "slow", "factor": 2, "start": "-1 ms"}, "start = '-1 ms': must be at least 0"),
        ({"kind": "slow", "factor": 2, "start": "2 s", "end": "1 s"}, "end must come after"),
        ({"kind": "delay", "delay": "1 s", "sender": "a", "between": ["a", "b"]}, "leave out"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configured(row)


def test_live_runs_have_no_faults() -> None:
    with pytest.raises(ConfigError, match="faults are of virtual time"):
        configured({"kind": "loss", "rate": 0.1}, clock="live", backend="ray")


def test_live_runs_recover_exactly_once() -> None:
    with pytest.raises(ConfigError, match="'at_least_once' is for virtual time"):
        configured(clock="live", backend="ray", recovery={"guarantee": "at_least_once"})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"kind": "pause", "end": 9, "actor": "joner.*"}, r"faults\.1\.actor: no actor .* did you"),
        ({"kind": "loss", "rate": 0.1, "sender": "x"}, r"faults\.1\.sender: no site .* are s, j$"),
        ({"kind": "partition", "between": ["s", "k"], "end": 9}, r"faults\.1\.between: no site"),
    ],
)  # fmt: skip
def test_a_name_that_nobody_has_is_refused(row: dict[str, Any], message: str) -> None:
    faults = configured({"kind": "loss", "rate": 0.1}, row).faults
    with pytest.raises(NetworkError, match=message):
        check_names(faults, ["source", "joiner.0"], ["s", "j"])
