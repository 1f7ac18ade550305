"""The digest of a study's inputs changes with whatever its results depend on."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from netsim.cost import PROFILES
from scenarios.many_runs import RunResult
from scenarios.run_directory import write_json
from scenarios.scenario_files import ConfigError
from scenarios.study import findings
from scenarios.study.findings import Findings, digest_inputs
from scenarios.study.study import Study, load_study

STUDY = """
query = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '10' ON '20')"
[[streams]]
files = ["{folder}"]
[study]
measure = "throughput_tps"
label = "tuples/s"
[study.axis]
label = "arrivals a message"
keys = ["feeding.batch_rows"]
values = [1, 2]
[study.variants]
"one" = {{}}
[[study.claims]]
text = "it rises"
of = ["one"]
rises = true
"""


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    (tmp_path / "s").mkdir()
    path = tmp_path / "s" / "part-00000.parquet"
    path.write_bytes(b"")
    return path


def load(segment: Path, old: str = "", new: str = "") -> Study:
    path = segment.parents[1] / "mine.toml"
    path.write_text(STUDY.format(folder=segment.parent).replace(old, new))
    study = load_study(str(path))
    assert study is not None
    return study


def digest(segment: Path, old: str = "", new: str = "") -> str:
    return digest_inputs(load(segment, old, new))


def findings_of(study: Study, *passed: bool | None) -> Findings:
    """Return findings whose values rise, and whose runs had these verdicts."""
    results = {
        point.number: RunResult(
            config=point.config, record={"throughput_tps": point.number}, passed=verdict
        )
        for point, verdict in zip(study.points, passed, strict=True)
    }
    return Findings(study=study, results=results, inputs=digest_inputs(study))


@pytest.mark.parametrize(
    ("verdict", "outcome", "value"),
    [(True, "holds", 2), (None, "holds", 2), (False, "not comparable", None)],
)
def test_no_claim_is_judged_by_a_run_whose_answer_was_wrong(
    verdict: bool | None, outcome: str, value: int | None, segment: Path
) -> None:
    found = findings_of(load(segment), True, verdict)
    (claim,) = found.claims
    assert claim.outcome == outcome
    (chart,) = found.as_json("")["charts"]
    assert chart["variants"][0]["values"] == [1, value]
    assert found.as_json("")["points"][1]["throughput_tps"] == 2


@pytest.mark.parametrize("damage", ["[]", "7", "{}", '{"inputs": "INPUTS", "points": [{}, {}]}'])
def test_findings_that_are_damaged_are_none(damage: str, segment: Path) -> None:
    study, folder = load(segment), segment.parents[1]
    written = findings_of(study, True, True).as_json("")
    write_json(folder / "study.json", written)
    assert Findings.read(study, folder) is not None
    (folder / "study.json").write_text(damage.replace("INPUTS", written["inputs"]))
    assert Findings.read(study, folder) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("values = [1, 2]", "values = [1, 3]"),
        ("[study.axis]", "[study.parts]\nall = ['po_join']\n[study.axis]"),
        ("query =", "seed = 2\nquery ="),
    ],
)
def test_other_runs_are_other_inputs(segment: Path, old: str, new: str) -> None:
    assert digest(segment) == digest(segment)
    assert digest(segment) != digest(segment, old, new)


@pytest.mark.parametrize(("old", "new"), [("rises = true", "falls = true"), ("tuples/s", "/s")])
def test_claims_and_labels_are_no_inputs(segment: Path, old: str, new: str) -> None:
    assert digest(segment) == digest(segment, old, new)


def test_other_data_are_other_inputs(segment: Path) -> None:
    before = digest(segment)
    os.utime(segment, ns=(0, 1))
    touched = digest(segment)
    segment.write_bytes(b"more")
    os.utime(segment, ns=(0, 1))
    assert len({before, touched, digest(segment)}) == 3


def test_data_that_are_not_there_are_named(segment: Path) -> None:
    segment.unlink()
    segment.parent.rmdir()
    with pytest.raises(ConfigError, match="no data: there is no"):
        digest(segment)


def test_other_prices_are_other_inputs(segment: Path) -> None:
    profile = segment.parents[1] / "prices.toml"
    priced = f'profile = "{profile}"\nquery ='
    digests = set()
    for tuple_ps in (100, 200):
        profile.write_text(
            (PROFILES / "default.toml").read_text() + f"\n# {tuple_ps}\n", encoding="utf-8"
        )
        digests.add(digest(segment, "query =", priced))
    assert len(digests) == 2


def test_another_topology_or_structure_of_ones_own_is_another_input(
    segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = segment.parents[1] / "own_index_of_inputs.py"
    monkeypatch.syspath_prepend(module.parent)
    digests = set()
    for text in ("", "# changed\n"):
        module.write_text(
            f"from joins.indexes.windows.nested_loop import NestedLoop\n{text}\n\n"
            "class Own(NestedLoop):\n    pass\n"
        )
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
        import_module(module.stem)
        findings._digest_package.cache_clear()
        own = f"topology = 'split_join'\nparameters = {{ index = '{module.stem}:Own' }}\nquery ="
        digests.add(digest(segment, "query =", own))
    assert len(digests) == 2
