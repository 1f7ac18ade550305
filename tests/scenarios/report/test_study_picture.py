"""Lines of a study's picture, above all those that coincide, and bars."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from scenarios.report.picture import Picture
from scenarios.report.study_picture import find_coinciding, study_picture
from scenarios.study.findings import Findings
from scenarios.study.judging import Estimate, Estimates
from scenarios.study.study import Chart, load_study
from tests.scenarios.report.test_picture import check_picture

STUDY = """
query = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '10' ON '20')"
[[streams]]
files = ["s.parquet"]
[study]
measure = "throughput_tps"
label = "tuples/s"
[study.axis]
label = "arrivals a message"
keys = ["feeding.batch_rows"]
values = [1, 2, 3]
[study.variants]
"""
NAN = float("nan")

Values = Sequence[float | tuple[float, ...] | None]
"""Per point what was measured: one value, or one for each of several seeds."""


@dataclass(frozen=True, kw_only=True)
class Made(Findings):
    """Findings that nothing was run for."""

    made: Mapping[str, Values]

    def curves(self, chart: Chart) -> dict[str, Estimates]:
        return {name: [_estimate(value) for value in line] for name, line in self.made.items()}


def _estimate(value: float | tuple[float, ...] | None) -> Estimate | None:
    if value is None:
        return None
    return Estimate(value if isinstance(value, tuple) else (float(value),))


def drawn(
    tmp_path: Path,
    lines: list[Values],
    more: str = "",
    label: str = "tuples/s",
    below: str = "arrivals a message",
) -> Picture:
    """Return a picture of variants named 0, 1 ..., with *more* said of its axis."""
    names = [str(line) for line in range(len(lines))]
    path = tmp_path / "mine.toml"
    before, paper = more.split("|") if "|" in more else (more, "")
    changed = STUDY.replace("[study.variants]", f"{before}\n[study.variants]")
    changed = changed.replace('label = "tuples/s"', f'label = "{label}"')
    changed = changed.replace('label = "arrivals a message"', f'label = "{below}"')
    variants = "\n".join(f"{name}.set = {{}}" for name in names)
    path.write_text(f"{changed}{variants}\n{paper}")
    study = load_study(str(path))
    assert study is not None
    picture = study_picture(
        Made(study=study, results={}, made=dict(zip(names, lines, strict=True)))
    )
    check_picture(picture)
    return picture


def layers(picture: Picture) -> list[dict[str, Any]]:
    (panel,) = picture.panels
    listed: list[dict[str, Any]] = panel["layer"]
    return listed


def stretches(tmp_path: Path, lines: list[Values]) -> list[list[tuple[list[float], float]]]:
    """Return of each stretch between two points the dashes of the lines that are drawn there."""
    segments = layers(drawn(tmp_path, lines))[0]["data"]["values"]
    return [[(one["dash"], one["offset"]) for one in segments if one["x"] == x] for x in (1.0, 2.0)]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_of_lines_that_coincide_every_one_is_seen(tmp_path: Path, count: int) -> None:
    for dashes in stretches(tmp_path, [[5, 7, 9]] * count):
        assert len(dashes) == count
        if count == 1:
            assert dashes == [([], 0.0)]
            continue
        painted = [
            {int(place - offset) % int(sum(dash)) for place in range(int(dash[0]))}
            for dash, offset in dashes
        ]
        assert len(set().union(*painted)) == sum(map(len, painted))  # none is above another


def test_lines_on_a_logarithmic_axis_coincide_by_what_is_seen(tmp_path: Path) -> None:
    lines: list[Values] = [[1, 1, 1000], [1.01, 1.01, 1000], [20, 20, 20]]
    for dashes in stretches(tmp_path, lines):
        assert [bool(dash) for dash, _ in dashes] == [True, True, False]
    assert layers(drawn(tmp_path, lines))[1]["encoding"]["y"]["scale"]["type"] == "log"


@pytest.mark.parametrize("axis", ["", "categories = true"])
def test_intervals_of_several_seeds_are_drawn_whole(tmp_path: Path, axis: str) -> None:
    """Mean 10 and 20, by Student's t ± 2.484; of the third all seeds came to one value."""
    seeds: Values = [(9.0, 10.0, 11.0), (19.0, 20.0, 21.0), (30.0, 30.0, 30.0)]
    picture = drawn(tmp_path, [seeds], axis)
    half = 4.302653 / 3**0.5
    ends = zip(picture.data["low"], picture.data["high"], strict=True)
    for (low, high), mean, reach in zip(ends, (10, 20, 30), (half, half, 0), strict=True):
        assert (low, high) == pytest.approx((mean - reach, mean + reach), abs=1e-4)
    assert _fields(picture, "y2") >= {"high"}
    assert "high" not in _fields(drawn(tmp_path, [[10, 20, 30]], axis), "y2")


def test_a_line_goes_on_over_what_is_not_run_and_has_a_gap_where_a_run_failed(
    tmp_path: Path,
) -> None:
    lines: list[Values] = [[1, 2, 3], [3, None, 9]]
    failed = layers(drawn(tmp_path, lines))[0]["data"]["values"]
    assert {(one["variant"], one["x"], one["to_x"]) for one in failed} == {("0", 1, 2), ("0", 2, 3)}
    (tmp_path / "other").mkdir()
    not_run = drawn(tmp_path / "other", lines, more="|1.only = [0, 2]")
    joined = [one for one in layers(not_run)[0]["data"]["values"] if one["variant"] == "1"]
    assert [(one["x"], one["y"], one["to_x"], one["to_y"]) for one in joined] == [(1, 3, 3, 9)]


def test_panels_of_one_name_are_of_their_own_values(tmp_path: Path) -> None:
    panels = [f'[[study.panels]]\nname = "seed 1"\nlabel = "{label}"' for label in ("a", "b")]
    picture = drawn(tmp_path, [[1, 2, 3]], "\n".join(panels))
    names = ["seed 1, panel 1", "seed 1, panel 2"]
    assert [row["panel"] for row in picture.rows] == [name for name in names for _ in range(3)]
    shown = [panel["transform"][0]["filter"] for panel in picture.panels]
    assert shown == [f"datum.panel == {name!r}" for name in names]


def test_single_points_have_no_line(tmp_path: Path) -> None:
    (markers,) = layers(drawn(tmp_path, [[1, None, 3]]))
    assert markers["mark"]["type"] == "point"


@pytest.mark.parametrize(("values", "floor"), [((1.0, 9.0), "0"), ((-9.0, -1.0), None)])
def test_an_interval_of_what_is_never_negative_ends_at_0(
    tmp_path: Path, values: tuple[float, float], floor: str | None
) -> None:
    drawn_layers = layers(drawn(tmp_path, [[values] * 3]))
    (bar,) = (one for one in drawn_layers if "high" in str(one["encoding"].get("y2")))
    cut = [one["calculate"] for one in bar["transform"] if "calculate" in one]
    assert cut == ([f"max(datum.low, {floor})"] if floor else [])


def _fields(picture: Picture, channel: str) -> set[str]:
    return {
        layer["encoding"][channel]["field"]
        for layer in layers(picture)
        if channel in layer["encoding"]
    }


def test_a_long_label_stays_beside_its_panel(tmp_path: Path) -> None:
    label = "tuples/s that the worker takes of S (virtual time)"
    written = layers(drawn(tmp_path, [[1, 2, 3]], label=label))[1]["encoding"]["y"]["title"]
    assert " ".join(written) == label
    assert max(map(len, written)) < 30


def test_a_long_label_stays_below_its_panel(tmp_path: Path) -> None:
    label = "slide - window - PEs (the paper's: 60K-600K-6 to 100K-1M-10)"
    picture = drawn(tmp_path, [[1, 2, 3]], below=label)
    (panel,) = picture.panels
    assert " ".join(panel["encoding"]["x"]["title"]) == label
    assert max(map(len, panel["encoding"]["x"]["title"])) < 50


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ("[1, 64, 1024]", ["1", "64", "1,024"]),
        ("[60000, 80000, 100000]", ["60k", "80k", "100k"]),
    ],
)
def test_places_below_an_axis_are_written_exactly(
    values: str, written: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "STUDY", STUDY.replace("[1, 2, 3]", values))
    svg = vl_convert.vegalite_to_svg(drawn(tmp_path, [[1, 2, 3]]).spec())
    labels = re.findall(r">([^<>]+)</text>", svg)
    assert set(written) <= set(labels)


def test_a_line_that_is_not_there_takes_no_turn(tmp_path: Path) -> None:
    first, second = stretches(tmp_path, [[5, 5, None], [5, 5, 5], [None, None, None]])
    assert [bool(dash) for dash, _ in first] == [True, True]
    assert [bool(dash) for dash, _ in second] == [False]


@pytest.mark.parametrize(
    ("most", "filtered"), [(12, "datum.paper <= 36"), (1000, "datum.paper <= 10000")]
)
def test_the_papers_values_are_drawn_where_they_leave_ours_room(
    most: int, filtered: str, tmp_path: Path
) -> None:
    paper = "|[[study.paper]]\nof = ['0']\nvalues = [12, 200, nan]"
    picture = drawn(tmp_path, [[10, 11, most]], paper)
    assert picture.data["paper"][:2] == [12.0, 200.0]
    (shown,) = [one for one in layers(picture) if one["encoding"]["y"]["field"] == "paper"]
    assert filtered in shown["transform"][0]["filter"]
    far = drawn(tmp_path, [[10, 11, 12]], paper.replace("12, 200", "900, 900"))
    assert "paper" not in _fields(far, "y")


def test_lines_coincide_on_a_stretch_if_they_do_at_both_ends() -> None:
    heights = np.array([[0.1, 0.5, 0.5], [0.9, 0.5, 0.505], [NAN, 0.5, 0.2]])
    together, place = find_coinciding(heights)
    assert together.tolist() == [[1, 2], [1, 2], [0, 1]]
    assert place.tolist() == [[0, 0], [0, 1], [0, 0]]


def test_categories_are_bars_as_long_as_their_values(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [[1, 20, 3000], [2, None, 1]], "categories = true")
    bars, missing, *others = layers(picture)
    assert bars["mark"]["type"] == "bar"
    assert not others
    assert bars["encoding"]["y"]["scale"] == {"zero": True}
    assert picture.data["value"] == [1.0, 20.0, 3000.0, 2.0, None, 1.0]
    assert missing["transform"] == [{"filter": "!isValid(datum.value)"}]


def test_bars_in_print_have_their_colours_in_the_key(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [[1, 2, 3], [3, 2, 1]], "categories = true")
    svg = vl_convert.vegalite_to_svg(picture.spec())
    key = re.findall(r'<g class="mark-symbol role-legend-symbol".*?<path([^>]*)>', svg)
    assert len(key) == 2
    assert all('fill="#' in symbol and 'Z"' in symbol for symbol in key), "an area of a colour"


@given(
    st.lists(
        st.lists(st.sampled_from([NAN, 0, 0.004, 0.01, 0.02, 0.5]), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_lines_that_coincide_share_their_turns(rows: list[list[float]]) -> None:
    heights = np.array(rows)
    level = find_coinciding(np.repeat(heights, 2, axis=1))  # every other stretch is level
    turns_of = zip(heights.T, *(one.T[::2] for one in level), strict=True)
    for column, together, place in turns_of:
        assert (together == 0).tolist() == np.isnan(column).tolist()
        for count in set(together[together > 0].tolist()):
            turns = sorted(place[together == count].tolist())
            assert turns == sorted(list(range(count)) * (len(turns) // count))
        for line in np.flatnonzero(together == 1):  # alone, so that no other is where it is
            assert (column == column[line]).sum() == 1
