"""A structure of the caller's own: passed as a class, or named where its module is imported."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from rich.console import Console

import joinsim as js
from actors.protocol import ActorError
from joins.indexes.immutable.po_join import PoJoinSegment
from joins.indexes.immutable.segment import ImmutableSegment
from joins.indexes.windows.nested_loop import NestedLoop
from joins.window_join.nested_loop_join import NestedLoopJoin
from joins.window_join.rows import KernelRows
from joins.work import NO_WORK, Work
from netsim.cost import COSTS
from scenarios.terminal.views import show_run
from topologies import TOPOLOGIES, find_topology
from topologies.own_class import OR_OWN_INDEX
from topologies.parameters import describe
from topologies.topology import Topology

QUERY = "SELECT * FROM R, S WHERE R.x < S.x AND R.y = S.y WINDOW AS (SLIDE INTERVAL '5' ON '20')"
PATH = f"{__name__}:Mine"


class Mine(NestedLoop):
    """An index that is not registered."""


class Broken(Mine):
    """Misses a match now and then."""

    def probe(self, ranges: Any, *, enumerate: bool = False) -> Any:
        return super().probe(ranges._replace(stop=ranges.stop - 1), enumerate=enumerate)


class MySegment(PoJoinSegment):
    """An immutable structure that is not registered."""


class MyJoin(NestedLoopJoin):
    """A window join that is not registered."""


class BrokenSegment(MySegment):
    """Misses a match now and then."""

    def probe(self, ranges: Any, **how: Any) -> Any:
        return super().probe(ranges._replace(stop=ranges.stop - 1), **how)


class BrokenJoin(MyJoin):
    """Misses a match now and then."""

    def join(self, rows: KernelRows, *, enumerate: bool = False) -> Any:
        return super().join(rows._replace(stop=rows.stop - 1), enumerate=enumerate)


class CountingIndex(Mine):
    """Counts matches alone."""

    def probe(self, ranges: Any, *, enumerate: bool = False) -> Any:
        return super().probe(ranges, enumerate=False)


class CountingJoin(MyJoin):
    """Counts matches alone."""

    def join(self, rows: KernelRows, *, enumerate: bool = False) -> Any:
        return super().join(rows, enumerate=False)


class Unfinished(ImmutableSegment):
    """Has not all methods."""

    def _seal(self) -> Work:
        return NO_WORK


@pytest.fixture(scope="module")
def streams() -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return {
        name: {"x": rng.integers(0, 9, 200), "y": rng.random(200).round(1)} for name in ("R", "S")
    }


def takes_own_index(topology: Topology[Any]) -> bool:
    hints = get_type_hints(topology.parameters_type, include_extras=True)
    return "index" in hints and OR_OWN_INDEX in get_args(hints["index"])


@pytest.mark.parametrize(
    "topology", [name for name, topology in TOPOLOGIES.items() if takes_own_index(topology)]
)
@pytest.mark.parametrize("index", [Mine, PATH])
def test_it_joins_wherever_a_window_has_an_index(
    topology: str, index: Any, streams: dict[str, dict[str, np.ndarray]]
) -> None:
    run = js.run(QUERY, streams, topology=topology, index=index)
    assert run.verdict.exact
    written = json.loads((run.directory / "run.json").read_text())
    assert written["configuration"]["parameters"] == {"index": PATH}
    assert written["parameters"]["index"] == PATH
    assert f"index={PATH!r}" in run.replay


def test_that_it_has_no_price_of_its_own_is_said(
    streams: dict[str, dict[str, np.ndarray]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = js.run(QUERY, streams, topology="split_join", index=Mine)
    note = run.finished.price_note
    assert note is not None
    assert "no price for Mine.insert, Mine.probe" in note
    run.report(tmp_path / "run.html")
    assert escape(note) in (tmp_path / "run.html").read_text()
    show_run(Console(width=2_000), run.finished, "")
    assert f"note: {note}" in capsys.readouterr().out
    assert js.run(QUERY, streams, topology="split_join").finished.price_note is None
    (tmp_path / "units.toml").write_text("\n".join(f"{cost} = 7" for cost in COSTS))
    profile = str(tmp_path / "units.toml")
    units = js.run(QUERY, streams, topology="split_join", index=Mine, profile=profile)
    assert units.finished.price_note is None  # it prices no structure at all


@pytest.mark.parametrize(
    "how",
    [
        {"topology": "split_join", "index": Broken},
        {"topology": "spo_join", "immutable": BrokenSegment, "merge_threshold": "slide"},
        {"topology": "ibwj", "index": BrokenJoin},
    ],
)
def test_one_that_is_wrong_is_found(
    how: dict[str, Any], streams: dict[str, dict[str, np.ndarray]]
) -> None:
    assert js.run(QUERY, streams, **how).verdict.passed is False


@pytest.mark.parametrize(
    "how",
    [
        {"topology": "ibwj", "index": CountingJoin},
        {"topology": "low_latency_handshake_join", "index": CountingIndex},
    ],
)
def test_one_that_only_counts_where_ids_are_asked_for_is_told_so(
    how: dict[str, Any], streams: dict[str, dict[str, np.ndarray]]
) -> None:
    with pytest.raises(ActorError, match="counted, not enumerated: with enumerate=True"):
        js.run(QUERY, streams, **how)


@pytest.mark.parametrize(
    "how", [{"topology": "spo_join", "immutable": MySegment}, {"topology": "ibwj", "index": MyJoin}]
)
def test_systems_take_structures_of_their_own_kind(
    how: dict[str, Any], streams: dict[str, dict[str, np.ndarray]]
) -> None:
    run = js.run(QUERY, streams, **how)
    assert run.verdict.exact
    (own,) = (kind for kind in how.values() if isinstance(kind, type))
    own_path = f"{own.__module__}:{own.__name__}"
    written = json.loads((run.directory / "run.json").read_text())
    assert own_path in written["parameters"].values()
    unlike: dict[str, Any] = {key: Mine if kind is own else kind for key, kind in how.items()}
    with pytest.raises(js.ConfigError, match="does not derive from joins"):
        js.run(QUERY, streams, **unlike)


def test_a_segment_that_lacks_a_method_is_refused(
    streams: dict[str, dict[str, np.ndarray]],
) -> None:
    with pytest.raises(js.ConfigError, match="it lacks _intersect"):
        js.run(QUERY, streams, topology="spo_join", immutable=Unfinished)


def test_threads_share_no_join_of_ones_own(streams: dict[str, dict[str, np.ndarray]]) -> None:
    with pytest.raises(js.JoinsimError, match="cannot share an index of MyJoin"):
        js.run(QUERY, streams, topology="ibwj", index=MyJoin, threads=2)


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(
    "how",
    [
        {"topology": "split_join", "index": Mine, "pes": 2},
        {"topology": "spo_join", "immutable": MySegment},
        {"topology": "ibwj", "index": MyJoin},
    ],
)
def test_processes_of_ray_import_it(
    how: dict[str, Any], streams: dict[str, dict[str, np.ndarray]]
) -> None:
    inline = js.run(QUERY, streams, **how)
    assert js.run(QUERY, streams, backend="ray", **how).digest == inline.digest


def test_it_is_compared_and_swept_like_others(
    streams: dict[str, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    compared = js.compare(QUERY, streams, topologies=["split_join", "bchj"], index=Mine)
    assert set(compared.table["topology"].to_pylist()) == {"split_join", "bchj"}
    over = {"index": ["nested_loop", Mine]}
    swept = js.sweep(QUERY, streams, over=over, topology="split_join", processes=1, out=tmp_path)
    assert swept.points["label"].to_pylist() == ["split_join, nested_loop", f"split_join, {PATH}"]
    assert repr({"index": ["nested_loop", PATH]}) in swept.replay
    assert set(swept.points["passed"].to_pylist()) == {True}
    assert js.show("split_join", index=Mine)


def test_it_is_advised_by_its_path(streams: dict[str, dict[str, np.ndarray]]) -> None:
    advice = js.advise(
        QUERY, streams, topologies="split_join", machines=2, engines="", budget_s=2, index=Mine
    )
    assert advice.best.parameters["index"] == PATH
    assert advice.summary["candidates"][0]["parameters"]["index"] == PATH


def test_what_is_no_index_is_refused(streams: dict[str, dict[str, np.ndarray]]) -> None:
    class Local(Mine):
        pass

    for index, message in (
        (dict, "index = 'builtins:dict': an index has __len__, probe, .*; it lacks probe, "),
        (Local, "index = <class .*Local'>: <class .*Local'> cannot be imported, as a function"),
        ("nowhere:Mine", "index = 'nowhere:Mine': import nowhere before, or pass the class"),
        (f"{__name__}:Yours", "index = '.*:Yours': it cannot be imported: .* no attribute 'Yours'"),
        ("nested", "index = 'nested': .*'nested_loop', 'b_plus_tree' or 'chain_index'"),
        (5, "index = 5: "),
    ):
        with pytest.raises(js.ConfigError, match=message):
            js.run(QUERY, streams, topology="split_join", index=index)


def test_a_class_by_whose_name_another_is_found_is_refused(
    streams: dict[str, dict[str, np.ndarray]],
) -> None:
    """As one of several that a loop defines, of which the last alone would run."""
    parts = {"__module__": __name__, "__qualname__": "Mine", "probe": Broken.probe}
    other = type("Mine", (Mine,), parts)
    message = f"{PATH} is another class than the one that was passed; give each a name of its own"
    for call in (
        lambda: js.run(QUERY, streams, topology="split_join", index=other),
        lambda: js.compare(QUERY, streams, topologies="split_join", index=other),
        lambda: js.sweep(
            QUERY, streams, over={"index": [Mine, other]}, topology="split_join", processes=1
        ),
    ):
        with pytest.raises(js.JoinsimError, match=message):
            call()


def test_a_run_is_shown_when_its_class_was_defined_anew(
    streams: dict[str, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a notebook does, whose cell is run again."""
    run = js.run(QUERY, streams, topology="split_join", index=Mine)
    monkeypatch.setitem(globals(), "Mine", Broken)
    assert PATH in run.report(tmp_path / "run.html").read_text()


class Duck:
    """Has what an index has, and no state that anybody could store."""

    insert = probe = expire = snapshot = restore = nbytes = __len__ = None


def test_an_index_whose_state_cannot_be_stored_is_refused(
    streams: dict[str, dict[str, np.ndarray]],
) -> None:
    with pytest.raises(js.ConfigError, match=r"does not derive from joins\.state\.Stateful"):
        js.run(QUERY, streams, topology="split_join", index=Duck)


def test_no_text_imports_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "intruder.py").write_text("raise SystemExit('it ran')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(js.ConfigError, match="import intruder before"):
        js.show("split_join", index="intruder:Mine")


def test_it_is_described_beside_ours() -> None:
    (index,) = [one for one in describe(find_topology("join_matrix")) if one.name == "index"]
    assert index.allowed == "nested_loop, b_plus_tree; or, from Python, a class of your own"
    assert '"format": "class"' in json.dumps(js.schema())
