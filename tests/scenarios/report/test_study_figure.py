"""Lines of a study's figure, above all those that coincide, and bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from scenarios.report.colours import LIGHT, SERIES
from scenarios.report.study_figure import find_coinciding, study_figure
from scenarios.report.style import style
from scenarios.study.estimates import Estimate
from scenarios.study.findings import Findings
from scenarios.study.judging import Estimates
from scenarios.study.study import Chart, load_study

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
    tmp_path: Path, lines: list[Values], axis: str = "", label: str = "tuples/s"
) -> FigureCanvasAgg:
    """Return a figure of variants named 0, 1 ..., with more said of its axis."""
    names = [str(line) for line in range(len(lines))]
    path = tmp_path / "mine.toml"
    changed = STUDY.replace("[study.variants]", f"{axis}\n[study.variants]")
    changed = changed.replace('label = "tuples/s"', f'label = "{label}"')
    path.write_text(changed + "\n".join(f"{name} = {{}}" for name in names))
    study = load_study(str(path))
    assert study is not None
    findings = Made(study=study, results={}, made=dict(zip(names, lines, strict=True)))
    with style():
        canvas = FigureCanvasAgg(study_figure(findings))
        canvas.draw()
    return canvas


def colours_between_points(tmp_path: Path, lines: list[Values]) -> list[set[str]]:
    """Return the lines' colours that are seen half way from one point to the next."""
    canvas = drawn(tmp_path, lines)
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    (axes,) = canvas.figure.axes
    panel = axes.get_window_extent()
    inside = pixels[len(pixels) - int(panel.y1) : len(pixels) - int(panel.y0)]
    seen = []
    for left, right in pairwise(axes.transData.transform([(x, 1) for x in (1, 2, 3)])[:, 0]):
        margin = (right - left) / 4
        stretch = inside[:, int(left + margin) : int(right - margin)].reshape(-1, 3)
        painted = {to_hex(pixel / 255) for pixel in np.unique(stretch, axis=0)}
        seen.append({name for name in SERIES if LIGHT[name] in painted})
    return seen


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_of_lines_that_coincide_every_one_is_seen(tmp_path: Path, count: int) -> None:
    wanted = set(SERIES[:count])
    assert colours_between_points(tmp_path, [[5, 7, 9]] * count) == [wanted, wanted]


def test_lines_on_a_logarithmic_axis_coincide_by_what_is_seen(tmp_path: Path) -> None:
    lines: list[Values] = [[1, 1, 1000], [1.01, 1.01, 1000], [20, 20, 20]]
    assert colours_between_points(tmp_path, lines) == [set(SERIES[:3])] * 2


@pytest.mark.parametrize("axis", ["", "categories = true"])
def test_intervals_of_several_seeds_are_drawn_whole(tmp_path: Path, axis: str) -> None:
    """Mean 10 and 20, by Student's t ± 2.484; of the third all seeds came to one value."""
    seeds: Values = [(9.0, 10.0, 11.0), (19.0, 20.0, 21.0), (30.0, 30.0, 30.0)]
    (axes,) = drawn(tmp_path, [seeds], axis).figure.axes
    (bars,) = [one for one in axes.collections if isinstance(one, LineCollection)]
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    half = 4.302653 / 3**0.5
    for end, mean, reach in zip(ends, (10, 20, 30), (half, half, 0), strict=True):
        assert end == pytest.approx([mean - reach, mean + reach], abs=1e-4)
    (once,) = drawn(tmp_path, [[10, 20, 30]], axis).figure.axes
    assert not [one for one in once.collections if isinstance(one, LineCollection)]


def test_a_long_label_stays_beside_its_panel(tmp_path: Path) -> None:
    label = "tuples/s that the worker takes of S (virtual time)"
    canvas = drawn(tmp_path, [[1, 2, 3]], label=label)
    (axes,) = canvas.figure.axes
    text, panel = axes.yaxis.label.get_window_extent(), axes.get_window_extent()
    assert text.height <= panel.height
    key = canvas.figure.legends[0].get_window_extent()
    assert not key.overlaps(text)
    assert axes.get_ylabel().replace("\n", " ") == label


def test_a_line_that_is_not_there_takes_no_turn(tmp_path: Path) -> None:
    lines: list[Values] = [[5, 5, None], [5, 5, 5], [None, None, None]]
    first, second = colours_between_points(tmp_path, lines)
    assert first == set(SERIES[:2])
    assert second == {SERIES[1]}


def test_lines_coincide_on_a_stretch_if_they_do_at_both_ends() -> None:
    heights = np.array([[0.1, 0.5, 0.5], [0.9, 0.5, 0.505], [NAN, 0.5, 0.2]])
    points, stretches = find_coinciding(heights)
    assert points.together.tolist() == [[1, 3, 2], [1, 3, 2], [0, 3, 1]]
    assert points.place.tolist() == [[0, 0, 0], [0, 1, 1], [0, 2, 0]]
    assert stretches.together.tolist() == [[1, 2], [1, 2], [0, 1]]
    assert stretches.place.tolist() == [[0, 0], [0, 1], [0, 0]]


def test_categories_are_bars_as_long_as_their_values(tmp_path: Path) -> None:
    lines: list[Values] = [[1, 20, 3000], [2, None, 1]]
    (axes,) = drawn(tmp_path, lines, "categories = true").figure.axes
    assert not axes.lines
    assert (axes.get_yscale(), axes.get_ylim()[0]) == ("linear", 0)
    bars = [bar for container in axes.containers for bar in container]
    assert [bar.get_height() for bar in bars] == [1, 20, 3000, 2, 0, 1]
    places = [bar.get_x() for bar in bars]
    assert np.argsort(places).tolist() == [0, 3, 1, 4, 2, 5]
    assert np.diff(sorted(places)).min() >= bars[0].get_width() - 1e-9
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3"]
    (missing,) = axes.texts
    assert missing.get_position()[0] == bars[4].get_x() + bars[4].get_width() / 2


@given(
    st.lists(
        st.lists(st.sampled_from([NAN, 0, 0.004, 0.01, 0.02, 0.5]), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_lines_that_coincide_share_their_turns(rows: list[list[float]]) -> None:
    heights = np.array(rows)
    points, _ = find_coinciding(heights)
    for column, together, place in zip(heights.T, points.together.T, points.place.T, strict=True):
        assert (together == 0).tolist() == np.isnan(column).tolist()
        for count in set(together[together > 0].tolist()):
            turns = sorted(place[together == count].tolist())
            assert turns == sorted(list(range(count)) * (len(turns) // count))
        for line in np.flatnonzero(together == 1):  # alone, so that no other is where it is
            assert (column == column[line]).sum() == 1
