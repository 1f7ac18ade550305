"""What a single operator costs, and that the kernel charges it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from joins.work import Work
from netsim.cost import (
    COSTS,
    OperatorCost,
    OperatorProfile,
    TransportCost,
    load_profile,
    operator_profiles,
)

COST = OperatorCost(message_ps=7_000_000, row_ps=2_000, work_percent=150)
TRANSPORT = TransportCost(local_message_ps=1_000_000, sent_message_ps=5_000_000, sent_byte_ps=20)


def test_a_profile_without_operators_has_none() -> None:
    assert operator_profiles("default", "split_join") == {}


def test_a_plain_profile_charges_nothing_for_sending_and_the_same_everywhere() -> None:
    profile = load_profile()
    assert not profile.charges_senders
    assert profile.sent_ns(1_000, 10, 10**6) == 0
    assert profile.local_ns(10, 100) == profile.floor_ns(10, 100)


def test_a_local_message_costs_no_bytes() -> None:
    profile = OperatorProfile.of(load_profile(), TRANSPORT, COST)
    assert profile.local_ns(0, 10**9) == 8_000
    assert profile.floor_ns(0, 10**9) > 10**8


def test_a_sender_pays_for_tuples_messages_and_bytes() -> None:
    profile = OperatorProfile.of(load_profile(), TRANSPORT, COST)
    assert profile.charges_senders
    assert profile.sent_ns(500, 3, 10_000) == 1_000 + 15_000 + 200


def test_work_has_a_factor_and_time_itself_has_none() -> None:
    default = load_profile()
    profile = OperatorProfile.of(default, TRANSPORT, COST)
    work = Work(comparisons=1_000, inserts=10, bits=4_000, matches=500)
    assert profile.work_ns(work) == default.work_ns(work) * 3 // 2
    assert profile.work_ns(Work(elapsed_ns=70)) == 70


def test_a_price_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sent_byte_ps is 0\.5; .* whole number of picoseconds"):
        replace(TRANSPORT, sent_byte_ps=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"work_percent is -1; .* whole number, 0 or more"):
        replace(COST, work_percent=-1)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("[operators.hash_join.a]\nmessage_ps = 1\nrow_ps = 1", "hash_join.a: .*work_percent"),
        ("[operators.hash_join.a]\nweight = 1", "hash_join.a: .*weight"),
        (
            "[operators.hash_join.a]\nmessage_ps = 1\nrow_ps = -1\nwork_percent = 1",
            "operators.hash_join.a: row_ps is -1; it must be a whole number of picoseconds, 0 or",
        ),
        (
            "[operators.hash_join.a]\nmessage_ps = 1\nrow_ps = 1\nwork_percent = 0.5",
            r"operators.hash_join.a: work_percent is 0\.5; it must be a whole number, 0 or more",
        ),
        (
            "[transport]\nlocal_message_ps = 1\nsent_message_ps = 1\nsent_byte_ps = 2.5",
            r"transport: sent_byte_ps is 2\.5; it must be a whole number of picoseconds",
        ),
        ("[transport]\nlocal_message_ps = 1", "transport: .*sent_message_ps"),
    ],
)
def test_a_wrong_entry_is_named_with_its_file(tmp_path: Path, entry: str, said: str) -> None:
    tables = {
        "transport": "[transport]\n" + "".join(f"{key} = 1\n" for key in vars(TRANSPORT)),
        "operators": "[operators.hash_join.a]\n" + "".join(f"{key} = 1\n" for key in vars(COST)),
    }
    tables["transport" if entry.startswith("[transport]") else "operators"] = entry
    units = "".join(f"{cost} = 1\n" for cost in COSTS)
    path = tmp_path / "mine.toml"
    path.write_text("\n".join([units, *tables.values()]))
    with pytest.raises(ValueError, match=f"{path}: .*{said}"):
        operator_profiles(path, "hash_join")
