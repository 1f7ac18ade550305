"""What work costs: by structures and their sizes, for one operator, and waiting for memory."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import Actor, ActorSpec, Context, Message
from joins.work import COUNTERS, Step, Work
from netsim.cost import (
    COSTS,
    PROFILES,
    CostProfile,
    Memory,
    OperatorCost,
    OperatorProfile,
    StructureCost,
    TransportCost,
    load_profile,
    operator_profiles,
)
from netsim.network import full_mesh
from tests.netsim.simulate import MESSAGE_NS, PROFILE, link, simulate
from tests.toys import Sender

# Cost profiles: integer sums, and files that are wrong.


def test_every_counter_of_work_costs_something_in_the_default_profile() -> None:
    profile = load_profile()
    for counter in COUNTERS:
        assert profile.work_ns(Work(**{counter: 10**6})) > 0, counter


def test_costs_are_whole_nanoseconds_of_the_exact_sum() -> None:
    profile = load_profile()
    work = Work(comparisons=3, matches=1)
    assert profile.work_ns(work) == (3 * profile.comparison_ps + profile.match_ps) // 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message_ps = 1", "missing"),
        ("surprise_ps = 1", "surprise_ps"),
    ],
)
def test_a_profile_file_that_is_wrong_is_named_with_its_keys(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as raised:
        load_profile(path)
    assert str(path) in str(raised.value)
    assert "a cost profile has the keys name, message_ps" in str(raised.value)


UNITS = "".join(f"{cost} = 1\n" for cost in COSTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("structures = 5", "structures is 5: it must be a table, or the name of a profile"),
        ("[structures]\nlike = 5", "structures.like is 5: it must be the name of a profile"),
        ("[structures]\nhash = 3", "structures.hash is 3: it must be a table, or the name of one"),
        ("memory = 3", "memory is 3: it must be a table"),
        ("operators = 3", "operators is 3: it must be a table"),
        ("transport = [1]", r"transport is \[1\]: it must be a table"),
        ("[operators]\nhash_join = 4", "operators.hash_join is 4: it must be a table"),
        (
            "[operators.hash_join]\njoiner = 4",
            "operators.hash_join.joiner is 4: it must be a table",
        ),
        ("name = 5", "name is 5: it must be text"),
    ],
)
def test_a_key_of_another_kind_is_named_with_what_it_must_be(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{text}\n{UNITS}" if text[0] != "[" else f"{UNITS}{text}\n")
    with pytest.raises(ValueError, match=f"^{path}: {message}"):
        load_profile(path)


def test_a_profile_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ValueError, match=f"^{path}: it is not in UTF-8"):
        load_profile(path)


def test_profiles_that_have_each_other_s_prices_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(f"{UNITS}[structures]\nlike = '{two}'\n")
    two.write_text(f"structures = '{one}'\n{UNITS}")
    with pytest.raises(ValueError, match=f"^{two}: structures are like those of {one}, .* its own"):
        load_profile(one)


def test_a_negative_or_broken_cost_is_refused() -> None:
    values: dict[str, Any] = dict.fromkeys((f.name for f in fields(CostProfile)), 1)
    for wrong in (-1, 0.5):
        with pytest.raises(ValueError, match=r"bit_ps is .* whole number of picoseconds"):
            CostProfile(**values | {"name": "x", "bit_ps": wrong})


def test_a_file_with_a_broken_cost_or_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (PROFILES / "default.toml").read_text()
    path.write_text(re.sub(r"(?m)^bit_ps = .*$", "bit_ps = -1", text))
    with pytest.raises(ValueError, match=f"{path}: bit_ps is -1; it must be a whole number"):
        load_profile(path)
    path.write_text("bit_ps = one\n")
    with pytest.raises(ValueError, match=f"{path}: .*line 1"):
        load_profile(path)


def test_an_unknown_profile_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match="no cost profile 'fast': give a TOML file or one of default"
    ):
        load_profile("fast")


def test_patterns_of_one_engine_pay_alike_for_a_tuple() -> None:
    """Replicas of WindFlow's and threads of Scale-OIJ's both take one tuple after the other."""
    costs = load_profile("multicore").structures
    assert costs["interval_join.join"] == costs["interval_join.shared"]
    assert costs["interval_join.join"].call_ps == 0
    default = load_profile("default").structures
    assert costs["b_plus_tree.probe"] == default["b_plus_tree.probe"]


def test_profiles_in_which_something_is_free_differ_from_others_in_that_alone() -> None:
    default, threads = load_profile("default"), load_profile("multicore")
    free: dict[str, Any] = {"message_ps": 0, "row_ps": 0, "byte_ps": 0}
    for name, other in (("free_messages", default), ("free_pointers", threads)):
        assert load_profile(name) == replace(other, name=name, **free)
    calls = {name: replace(cost, call_ps=0) for name, cost in default.structures.items()}
    assert load_profile("free_calls") == replace(
        default, name="free_calls", structures=calls, **free
    )


def test_profiles_in_which_something_costs_more_differ_from_others_in_that_alone() -> None:
    default, threads = load_profile("default"), load_profile("multicore")
    merge = default.structures["order_arrays.permutation"]
    slow = {"order_arrays.permutation": replace(merge, call_ps=100_000_000_000)}
    assert load_profile("slow_merges") == replace(
        default, name="slow_merges", structures={**default.structures, **slow}
    )
    join = threads.structures["interval_join.join"]
    unit_ps = list(join.unit_ps)
    unit_ps[COUNTERS.index("matches")] = 30_000
    match_percents = (100,) * len(join.sizes)
    dear = replace(join, unit_ps=tuple(unit_ps), match_percents=match_percents)
    assert load_profile("priced_pairs") == replace(
        threads, name="priced_pairs", structures={**threads.structures, "interval_join.join": dear}
    )


def test_what_if_profiles_of_pim_trees_differ_from_shared_memory_in_one_price() -> None:
    shared = load_profile("shared_memory")
    even, slow, free = {}, {}, {}
    for name, price in shared.structures.items():
        if name in ("ibwj_pim_tree.join", "ibwj_im_tree.join"):
            even[name] = replace(price, copied_percents=(100,) * len(price.sizes))
        if name in ("ibwj_shared_bw_tree.join", "ibwj_shared_pim_tree.join"):
            unit_ps = list(price.unit_ps)
            unit_ps[COUNTERS.index("atomics")] = 200_000
            slow[name] = replace(price, unit_ps=tuple(unit_ps))
        trees = ("b_plus_tree", "im_tree", "pim_tree", "shared_pim_tree")
        if name in [f"ibwj_{tree}.join" for tree in trees]:
            unit_ps = list(price.unit_ps)
            unit_ps[COUNTERS.index("matches")] = 0
            free[name] = replace(price, unit_ps=tuple(unit_ps))
    expected = {"even_merges": (even, 2), "slow_atomics": (slow, 2), "free_matches": (free, 4)}
    for name, (changed, structures) in expected.items():
        assert len(changed) == structures
        prices = {**shared.structures, **changed}
        assert load_profile(name) == replace(shared, name=name, structures=prices)


def test_slow_matches_differ_from_rdma_in_what_a_match_costs_when_windows_are_probed() -> None:
    rdma = load_profile("rdma")
    slow = {}
    for name in ("rap_table.probe", "wib_tree.probe", "nested_loop.probe"):
        price = rdma.structures[name]
        unit_ps = list(price.unit_ps)
        unit_ps[COUNTERS.index("matches")] = 30_000
        match_percents = (100,) * len(price.sizes)
        slow[name] = replace(price, unit_ps=tuple(unit_ps), match_percents=match_percents)
    prices = {**rdma.structures, **slow}
    assert load_profile("slow_matches") == replace(rdma, name="slow_matches", structures=prices)


def test_a_price_of_calls_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "free.toml"
    text = (PROFILES / "free_calls.toml").read_text()
    path.write_text(text.replace("\ncall_ps = 0", "\ncall_ps = -1"))
    with pytest.raises(ValueError, match="call_ps: call_ps is -1; it must be a whole number"):
        load_profile(path)


def test_a_price_like_that_of_a_structure_there_is_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for cost in ('"interval_join.shraed"', '{ like = "interval_join.shraed" }'):
        path.write_text(f'[structures]\nlike = "default"\n"interval_join.join" = {cost}\n')
        with pytest.raises(ValueError, match=r"there is no structure 'interval_join\.shraed' in"):
            load_profile(path)


# Prices of structures: integers, interpolated by size and tuples, and read as they are written.


STRUCTURE_COST = StructureCost(
    sizes=(64, 1024, 16384),
    rows=(1, 32),
    percents=((80, 40), (100, 60), (300, 160)),
    copied_percents=(100, 100, 50),
    match_percents=(10, 100, 200),
    call_ps=2_000_000,
    row_ps=5_000,
    unit_ps=(100, 200, 300, 400, 500, 600, 700),
)


def work_percent(size: int, rows: int) -> int:
    return STRUCTURE_COST.percents_at(size, rows).work


def test_a_step_costs_its_call_its_tuples_and_its_units() -> None:
    work = Work(comparisons=1, inserts=2, moves=3, bits=4, bytes_copied=5, matches=6, atomics=7)
    units = 100 + 2 * 200 + 3 * 300 + 4 * 400 + 5 * 500 + 6 * 600 + 7 * 700
    assert STRUCTURE_COST.work_ps(Step("x", 1, 1024), work) == 2_000_000 + 5_000 + units
    assert (
        STRUCTURE_COST.work_ps(Step("x", 32, 16384), Work())
        == (2_000_000 + 32 * 5_000) * 160 // 100
    )
    assert STRUCTURE_COST.work_ps(Step("x", 0, 1024), work) == units
    assert (
        STRUCTURE_COST.work_ps(Step("x", 0, 16384), Work(bytes_copied=2, matches=3)) == 500 + 3_600
    )
    assert STRUCTURE_COST.work_ps(Step("x", 1, 1024), work, calls=3) == 3 * 2_005_000 + units


def test_percents_are_interpolated_by_logarithms_and_stay_beyond_the_table() -> None:
    assert [work_percent(size, 1) for size in (64, 256, 1024, 4096, 16384)] == [
        80, 90, 100, 200, 300,
    ]  # fmt: skip
    assert work_percent(1, 1) == work_percent(0, 0) == 80
    assert work_percent(1 << 30, 1 << 20) == 160
    # Half way between 1 and 32 tuples by powers of 2, the mean of both.
    assert work_percent(1024, 6) in range(77, 83)


@given(size=st.integers(0, 1 << 24), rows=st.integers(0, 1 << 12))
def test_a_percent_lies_between_those_of_the_table(size: int, rows: int) -> None:
    assert 40 <= work_percent(size, rows) <= 300
    assert work_percent(size, rows) <= work_percent(2 * size, rows)


@pytest.mark.parametrize("sizes", [(1000, 1010, 16384), (64, 16384, 1024), (0, 64, 1024)])
def test_sizes_that_do_not_ascend_or_are_too_near_to_tell_apart_are_refused(
    sizes: tuple[int, ...],
) -> None:
    with pytest.raises(ValueError, match=r"sizes are \[.*\]; they must ascend from 1 or more"):
        replace(STRUCTURE_COST, sizes=sizes)


def profile_with(tmp_path: Path, lines: str) -> Path:
    path = tmp_path / "mine.toml"
    units = "\n".join(f"{k} = {v}" for k, v in vars(load_profile()).items() if k.endswith("_ps"))
    path.write_text(f'{units}\n[structures."hash.probe"]\n{lines}')
    return path


def test_a_unit_that_a_structure_does_not_price_has_the_profiles_price(tmp_path: Path) -> None:
    table = "sizes = [8]\nrows = [1]\npercents = [[100]]\ncall_ps = 1\nrow_ps = 2\nmatch_ps = 3\n"
    profile = load_profile(profile_with(tmp_path, table))
    cost = profile.structures["hash.probe"]
    assert cost.unit_ps == (*profile.unit_ps[:5], 3, profile.unit_ps[6])
    assert StructureCost.read(cost.written(profile.unit_ps), profile.unit_ps) == cost


def test_a_profile_has_the_prices_that_the_one_it_is_like_has_now(tmp_path: Path) -> None:
    table = "sizes = [8]\nrows = [1]\npercents = [[100]]\nrow_ps = 2\nmatch_ps = 3\n"
    other = profile_with(tmp_path, f"{table}call_ps = 1\n")
    units = other.read_text().partition("[structures")[0]
    like = tmp_path / "like.toml"
    like.write_text(f'structures = "{other}"\n{units}')
    assert load_profile(like).structures["hash.probe"].call_ps == 1
    other.write_text(other.read_text().replace("call_ps = 1", "call_ps = 23"))
    assert load_profile(like).structures["hash.probe"].call_ps == 23


def test_a_profile_and_an_operation_have_the_prices_that_they_do_not_state(tmp_path: Path) -> None:
    like = tmp_path / "like.toml"
    like.write_text(
        'row_ps = 7\n[structures]\nlike = "default"\n'
        '[structures."hash.probe"]\nlike = "hash.insert"\ncall_ps = 23\n'
    )
    default = load_profile()
    dear = replace(default.structures["hash.insert"], call_ps=23)
    assert load_profile(like) == replace(
        default, name="like", row_ps=7, structures={**default.structures, "hash.probe": dear}
    )


def test_only_steps_that_were_measured_have_prices_of_their_own() -> None:
    profile = replace(load_profile(), structures={"hash.probe": STRUCTURE_COST})
    work = Work(comparisons=1_000, matches=30)
    known, unknown = Step("hash.probe", 1, 1024), Step("hash.expire", 1, 1024)
    priced_ns = (2_000_000 + 5_000 + 100_000 + 30 * 600) // 1000
    assert profile.steps_ns([(known, work)], Work()) == priced_ns
    assert profile.steps_ns([(unknown, work)], Work()) == profile.work_ns(work)
    assert profile.steps_ns([(known, work), (unknown, work)], work) == (
        priced_ns + profile.work_ns(work + work)
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("rows = [1]\npercents = [[1]]\ncall_ps = 1\nrow_ps = 1", "sizes"),
        ("sizes = [8, 4]\nrows = [1]\npercents = [[1], [1]]\ncall_ps = 1\nrow_ps = 1", "ascend"),
        ("sizes = [8]\nrows = [1, 2]\npercents = [[1]]\ncall_ps = 1\nrow_ps = 1", "an entry"),
        ("sizes = [8]\nrows = [1]\npercents = [[1]]\ncall_ps = 0.5\nrow_ps = 1", "call_ps is 0.5;"),
        (
            "sizes = [8]\nrows = [1, 2]\npercents = [[1, -1]]\ncall_ps = 1\nrow_ps = 1",
            r"percents\[0\]\[1\] is -1; it must be a whole number, 0 or more",
        ),
        (
            "sizes = [8]\nrows = [1]\npercents = [[1]]\ncall_ps = 1\nrow_ps = 1\nmove_ps = 0.5",
            "move_ps is 0.5; it must be a whole number of picoseconds",
        ),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(ValueError, match=rf"mine.toml: structures.hash.probe: .*{said}"):
        load_profile(profile_with(tmp_path, lines))


# Waiting for memory: read from a profile, longer where cores work side by side.


MEMORY = Memory(
    cores=2,
    sizes=(1 << 14, 1 << 20, 1 << 26),
    wait_ps=(1_500, 10_000, 100_000),
    read_ps=(400, 3_000, 30_000),
    apart_percents=(100, 110, 160),
    same_percents=(100, 100, 130),
)
MEMORY_COST = StructureCost(
    sizes=(64, 1 << 14, 1 << 20),
    rows=(1, 1024),
    percents=((100, 80), (120, 90), (300, 200)),
    copied_percents=(100, 100, 100),
    match_percents=(50, 100, 150),
    call_ps=1_000_000,
    row_ps=10_000,
    unit_ps=(100,) * 7,
    tuple_bytes=32,
)


@pytest.mark.parametrize(
    ("nbytes", "cores", "same", "percent"),
    [
        (1 << 10, 2, False, 100),
        (1 << 20, 2, False, 110),
        (1 << 25, 2, False, 160),
        (1 << 40, 2, False, 160),
        (1 << 25, 1, False, 100),
        (1 << 25, 4, False, 280),
        (1 << 25, 2, True, 130),
    ],
)
def test_a_wait_is_longer_beside_others(nbytes: int, cores: int, same: bool, percent: int) -> None:
    assert MEMORY.percent_of_wait(nbytes, cores, same=same) == percent


def test_no_wait_is_longer_than_that_for_the_farthest_memory() -> None:
    """Two cores fill the last cache together; eight cannot do more than miss it."""
    cliff = replace(MEMORY, apart_percents=(100, 400, 100))
    assert cliff.percent_of_wait(1 << 20, 2) == 400
    assert cliff.percent_of_wait(1 << 20, 8) == 1_000
    assert cliff.percent_of_wait(1 << 26, 8) == 100


def test_only_the_part_above_the_least_takes_longer() -> None:
    beside = MEMORY_COST.on_cores(2, MEMORY, same=False)
    # 32 bytes a tuple: 2 KiB, 512 KiB, 32 MiB.
    assert beside.percents == ((100, 80), (100 + 20 * 110 // 100, 80 + 10 * 110 // 100), (420, 272))
    assert beside.match_percents == (50, 50 + 50 * 110 // 100, 50 + 100 * 160 // 100)
    expected = replace(
        beside, percents=MEMORY_COST.percents, match_percents=MEMORY_COST.match_percents
    )
    assert expected == MEMORY_COST


def test_a_core_alone_costs_what_the_profile_says() -> None:
    profile = replace(load_profile(), memory=MEMORY)
    assert profile.on_cores(1) is profile
    unmeasured = replace(profile, memory=None)
    assert unmeasured.on_cores(8) is unmeasured
    shared = profile.on_cores(2, same=True)
    assert shared.structures.keys() == profile.structures.keys()
    assert shared.on_cores(1) is shared


class Prober(Actor):
    """Probes a structure of 2^20 tuples once."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        context.charge(Work(), Step("x.probe", 1, 1 << 20))


@pytest.mark.parametrize(("at_work", "percent"), [(1, 300), (2, 420)])
def test_cores_that_are_at_work_take_memory_from_each_other(
    tmp_path: Path, at_work: int, percent: int
) -> None:
    probers = ["p0", "p1"]
    run = simulate(
        {"a": ActorSpec(actor=Sender, arguments={"count": 1, "nbytes": 0})}
        | dict.fromkeys(probers, ActorSpec(actor=Prober, arguments={})),
        {"a": {"out": tuple(probers[:at_work]), "idle": tuple(probers[at_work:])}}
        | {name: {} for name in probers},
        path=tmp_path / "trace.parquet",
        network=full_mesh(["x", "y"], link(1_000), cores=2),
        placement={"a": "x"} | dict.fromkeys(probers, "y"),
        profile=replace(PROFILE, memory=MEMORY, structures={"x.probe": MEMORY_COST}),
    )
    arrived_ns = MESSAGE_NS + 1_000
    call_ns = (MEMORY_COST.call_ps + MEMORY_COST.row_ps) * percent // 100 // 1000
    assert run.outcome.virtual_ns == arrived_ns + MESSAGE_NS + call_ns


@pytest.mark.parametrize(
    "wrong",
    [
        {"cores": 0},
        {"sizes": ()},
        {"sizes": (3, 2, 1)},
        {"wait_ps": (1, 2)},
        {"same_percents": (100, 100, -1)},
        {"read_ps": (1, 2, 3.5)},
    ],
)
def test_a_table_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(MEMORY, **wrong)


def test_a_profile_reads_back_its_memory() -> None:
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(MEMORY).items()}
    assert Memory.read(values) == MEMORY


# What a single operator costs, and that the kernel charges it.


OPERATOR_COST = OperatorCost(message_ps=7_000_000, row_ps=2_000, work_percent=150)
TRANSPORT = TransportCost(local_message_ps=1_000_000, sent_message_ps=5_000_000, sent_byte_ps=20)


def test_a_profile_without_operators_has_none() -> None:
    assert operator_profiles("default", "split_join") == {}


def test_a_plain_profile_charges_nothing_for_sending_and_the_same_everywhere() -> None:
    profile = load_profile()
    assert not profile.charges_senders
    assert profile.sent_ns(1_000, 10, 10**6) == 0
    assert profile.local_ns(10, 100) == profile.floor_ns(10, 100)


def test_a_local_message_costs_no_bytes() -> None:
    profile = OperatorProfile.of(load_profile(), TRANSPORT, OPERATOR_COST)
    assert profile.local_ns(0, 10**9) == 8_000
    assert profile.floor_ns(0, 10**9) > 10**8


def test_a_sender_pays_for_tuples_messages_and_bytes() -> None:
    profile = OperatorProfile.of(load_profile(), TRANSPORT, OPERATOR_COST)
    assert profile.charges_senders
    assert profile.sent_ns(500, 3, 10_000) == 1_000 + 15_000 + 200


def test_work_has_a_factor_and_time_itself_has_none() -> None:
    default = load_profile()
    profile = OperatorProfile.of(default, TRANSPORT, OPERATOR_COST)
    work = Work(comparisons=1_000, inserts=10, bits=4_000, matches=500)
    assert profile.work_ns(work) == default.work_ns(work) * 3 // 2
    assert profile.work_ns(Work(elapsed_ns=70)) == 70


def test_a_price_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sent_byte_ps is 0\.5; .* whole number of picoseconds"):
        replace(TRANSPORT, sent_byte_ps=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"work_percent is -1; .* whole number, 0 or more"):
        replace(OPERATOR_COST, work_percent=-1)


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
        "operators": "[operators.hash_join.a]\n"
        + "".join(f"{key} = 1\n" for key in vars(OPERATOR_COST)),
    }
    tables["transport" if entry.startswith("[transport]") else "operators"] = entry
    units = "".join(f"{cost} = 1\n" for cost in COSTS)
    path = tmp_path / "mine.toml"
    path.write_text("\n".join([units, *tables.values()]))
    with pytest.raises(ValueError, match=f"{path}: .*{said}"):
        operator_profiles(path, "hash_join")
