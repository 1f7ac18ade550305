"""Pictures are valid Vega-Lite, have data, and can be drawn into a page and into a file.

The script that draws them is made once, in another process while something else runs.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import altair
import jsonschema
import pytest
import vl_convert

from joins.errors import OutputError
from joins.machine.cache import CACHE_VARIABLE
from scenarios.report import picture
from scenarios.report.picture import (
    COLOURS,
    SERIES,
    Picture,
    colour_of,
    making_vega_script,
    number_axis,
    pictures_json,
    script_path,
    short,
    time_axis,
    tooltip,
    vega_script,
    write_figure,
)
from scenarios.scenario_files import ConfigError

_SCHEMA = Path(altair.__file__).parent / "vegalite" / "v6" / "schema" / "vega-lite-schema.json"


@cache
def _validator(kind: str) -> Any:
    definitions = json.loads(_SCHEMA.read_text(encoding="utf-8"))["definitions"]
    whole = {"$ref": f"#/definitions/{kind}", "definitions": definitions}
    return jsonschema.Draft7Validator(whole)


def check_picture(picture: Picture) -> None:
    """Raise where a picture is no Vega-Lite, has columns of different lengths, or draws nothing."""
    assert len({len(column) for column in picture.data.values()}) == 1
    spec = picture.spec()
    faults = [error.message[:300] for error in _validator("TopLevelConcatSpec").iter_errors(spec)]
    assert not faults
    assert "var(--" not in json.dumps(spec)
    page = json.loads(pictures_json({"one": picture}))["one"]
    assert page["panels"] == json.loads(json.dumps(picture.panels))
    for panel in picture.panels:
        alone = {key: spec[key] for key in ("data", "params", "config")} | panel
        assert _marks(vl_convert.vegalite_to_scenegraph(alone)["scenegraph"]) > 0
        kind = "TopLevelLayerSpec" if "layer" in panel else "TopLevelUnitSpec"
        assert _validator(kind).is_valid(alone)


def _marks(group: Any) -> int:
    """Return how many marks a scene shows, without its axes and titles."""
    if "items" not in group:
        return 0
    own = len(group["items"]) if group.get("role") == "mark" else 0
    inside = (child for item in group["items"] for child in item.get("items", ()))
    return own * (group.get("marktype") != "group") + sum(map(_marks, inside))


def small(**changed: Any) -> Picture:
    hover = tooltip(name="a name")
    panel = {
        "height": 80,
        "mark": {"type": "point"},
        "encoding": {
            "x": time_axis("at_s", (0.0, 4e-3), "time"),
            "y": number_axis("value", "value", type="log"),
            "color": colour_of("name", {"a": "blue", "b": "red"}),
            "tooltip": hover,
        },
    }
    made = {
        "title": "Some points",
        "data": {"at_s": [0.001, 0.002], "value": [10.0, float("nan")], "name": ["a", "b"]},
        "panels": [panel],
        "span_s": (0.0, 4e-3),
    }
    return Picture(**(made | changed))


def test_a_small_picture_is_valid_and_axes_show_units_that_fit() -> None:
    check_picture(small())
    svg = vl_convert.vegalite_to_svg(small().spec())
    assert ">time (ms)<" in svg
    assert ">4<" in svg
    assert ">b<" in svg  # in the key


def test_text_in_a_page_cannot_end_its_script() -> None:
    data = {"at_s": [1.0], "value": [1.0], "name": ["</script><b>&"]}
    text = pictures_json({"one": small(data=data)})
    assert "<" not in text
    assert json.loads(text)["one"]["data"]["name"] == ["</script><b>&"]


@pytest.mark.parametrize(
    ("suffix", "begin"), [(".svg", b"<svg"), (".PNG", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_a_figure_is_written_with_its_data_beside_it(
    suffix: str, begin: bytes, tmp_path: Path
) -> None:
    path = tmp_path / f"figure{suffix}"
    raw = tmp_path / "figure.csv"
    raw.write_text("what it was drawn of\n")
    write_figure(small(), path)
    assert path.read_bytes().startswith(begin)
    with (tmp_path / f"figure{suffix}.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert raw.read_text() == "what it was drawn of\n"
    assert rows == [["at_s", "value", "name"], ["0.001", "10.0", "a"], ["0.002", "", "b"]]


@pytest.mark.parametrize(("panels", "columns", "width"), [(1, 3, 240), (3, 3, 504), (2, 1, 504)])
def test_a_figure_is_as_wide_as_a_column_or_a_page(panels: int, columns: int, width: int) -> None:
    picture = small(panels=[*small().panels] * panels, columns=columns)
    svg = vl_convert.vegalite_to_svg(picture.spec())
    drawn = float(svg.split('width="', 1)[1].split('"', 1)[0])
    assert 0.85 * width <= drawn <= 1.05 * width


def test_a_long_title_of_an_axis_makes_no_figure_wider() -> None:
    (panel,) = small().panels
    x = panel["encoding"]["x"] | {"title": "slide - window - PEs (the paper's: 60K-600K-6 to 100K)"}
    layered = panel | {
        "encoding": panel["encoding"] | {"x": x},
        "layer": [{"mark": "point"}, {"mark": "rule", "encoding": {"x": x}}],
    }
    del layered["mark"]
    svg = vl_convert.vegalite_to_svg(small(panels=[layered] * 3, columns=3).spec())
    assert float(svg.split('width="', 1)[1].split('"', 1)[0]) <= 1.05 * 504
    assert svg.count(">slide - window - PEs") == 3, "once in each panel"


def test_a_key_of_long_names_makes_no_figure_wider() -> None:
    names = ["SPO-Join, one sink for all", "capacity of PO-Join PEs (derived)", "one PE", "most"]
    kinds = dict(zip(names, SERIES, strict=False))
    (panel,) = small().panels
    encoding = panel["encoding"] | {"color": colour_of("name", kinds)}
    picture = small(
        data={"at_s": [0.001, 0.002, 0.003, 0.004], "value": [1.0, 2.0, 3.0, 4.0], "name": names},
        panels=[panel | {"encoding": encoding}],
        columns=3,
        legend=kinds,
    )
    svg = vl_convert.vegalite_to_svg(picture.spec())
    assert float(svg.split('width="', 1)[1].split('"', 1)[0]) <= 1.05 * 240


def test_a_figure_of_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"figure\.jpg.*\.pdf, \.svg, \.png"):
        write_figure(small(), tmp_path / "figure.jpg")
    with pytest.raises(OutputError, match="cannot write to"):
        write_figure(small(), tmp_path / "nowhere" / "figure.svg")
    assert not list(tmp_path.iterdir())


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    """Return the contrast of WCAG 2, 1 to 21."""
    dark, light = sorted((_luminance(a), _luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_text_and_marks_have_the_contrast_that_wcag_aa_asks_for(theme: int) -> None:
    colours = {name: both[theme] for name, both in COLOURS.items()}
    grounds = [colours["paper"], colours["panel"]]
    for name in ("ink", "muted", "blue", "green", "red", "amber"):  # words and links
        assert min(_contrast(colours[name], ground) for ground in grounds) >= 4.5, name
    for name in set(colours) - {"line", "panel", "paper"}:
        assert _contrast(colours[name], colours["paper"]) >= 3, name


def test_an_axis_writes_large_numbers_short() -> None:
    values = [0.25, 999, 25_000]
    spec = {
        "data": {"values": [{"v": value} for value in values]},
        "transform": [{"calculate": short("v"), "as": "text"}],
        "mark": "text",
        "encoding": {"text": {"field": "text"}, "x": {"field": "v", "type": "quantitative"}},
    }
    svg = vl_convert.vegalite_to_svg(spec)
    assert all(f">{text}<" in svg for text in ("0.25", "999", "25k"))


class _Recorded(subprocess.Popen[bytes]):
    begun: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.begun.append(self)


def test_it_cannot_end_the_script_element_it_stands_in() -> None:
    assert "</script" not in vega_script()


def test_another_process_makes_what_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    path = script_path()
    until = time.monotonic() + 120
    with making_vega_script():
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
    assert path.read_text(encoding="utf-8") == vega_script.__wrapped__()


def test_it_ends_with_what_it_was_begun_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(subprocess, "Popen", _Recorded)
    with pytest.raises(KeyError), making_vega_script():
        raise KeyError
    (process,) = _Recorded.begun
    assert process.returncode == -signal.SIGKILL


def test_nothing_is_begun_where_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    vega_script.__wrapped__()
    begun: list[str] = []
    monkeypatch.setattr(picture, "start_program", begun.append)
    with making_vega_script():
        pass
    assert not begun


def test_where_no_process_may_begin_all_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    went_on = False
    with making_vega_script():
        went_on = True
    assert went_on
