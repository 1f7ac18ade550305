"""Every example runs, and prints what its text promises."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTS = {
    "first_join": "wrote first_join.html",
    "choosing_a_topology": "batches of 0.5 ms: p99 ",
    "compare_on_taxi_trips": "fastest exact system: ",
    "false_positives_over_seeds": "false positives: ",
    "own_topology": "holds: its answer is exactly right",
    "sweep_delta_and_tau": "320 ms  40 ms",
    "run_on_a_ray_cluster": "equal True",
    "prepare_with_spark": "4 rows, 1 rejected",
}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTS)


# Those that use Ray or Spark run where the other tests of Ray or Spark do, with the same Spark.
GROUPS = {
    "run_on_a_ray_cluster": "ray",
    "false_positives_over_seeds": "spark",
    "sweep_delta_and_tau": "spark",
    "prepare_with_spark": "spark",
}
NAMES = [
    pytest.param(name, marks=pytest.mark.xdist_group(GROUPS.get(name, name))) for name in PRINTS
]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_it_promises(
    name: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    prepared_once: None,
) -> None:
    if GROUPS.get(name) == "spark":
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert PRINTS[name] in capfd.readouterr().out
