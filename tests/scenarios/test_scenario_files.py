"""A scenario's file is data: what is wrong with it is said in one line, and no name leads out.

The schema of scenario files describes every file of ours, and points at what is wrong.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import joinsim as js
from joins.errors import DataError
from scenarios.config import StreamConfig, build_network
from scenarios.scenario_files import (
    ConfigError,
    build,
    catalog,
    change,
    load,
    parse_toml,
)
from scenarios.study.study import load_study
from spark_bridge.pipeline.raw_source import RawSource

QUERY = "SELECT * FROM R WHERE R.a1 < R.a2 WINDOW AS (SLIDE INTERVAL '1' ON '100')"
BASE = f'query = "{QUERY}"\nstreams = [{{ files = ["x.parquet"] }}]\n'


def written(folder: Path, text: str, *, name: str = "mine.toml", start: bytes = b"") -> str:
    (folder / name).write_bytes(start + text.encode())
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 'a'\nx = " + "[" * 5000 + "]" * 5000, r"nested 5,000 deep \(at line 5\)"),
        ("\n\nrows = " + "9" * 5000, r"a number of 5,000 digits \(at line 6\)"),
        ("rows = " + "1_0" * 3000, r"a number of 9,000 digits \(at line 4\)"),
        ("rows = ", r"Invalid value \(at end of document\)"),
    ],
)
def test_what_python_cannot_parse_is_said_in_one_line(
    tmp_path: Path, text: str, words: str
) -> None:
    path = written(tmp_path, BASE + "\n" + text)
    with pytest.raises(ConfigError, match=words) as error:
        load(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("extended", "message"),
    [
        ("'oij-w2'", "mine.toml: extends = 'oij-w2': .* did you mean 'oij-w1'"),
        ("'mine.toml'", "extends = 'mine.toml': a file extends one of our scenarios"),
        ("5", "extends = 5: a file extends one of our scenarios"),
        ("['oij-w1']", r"extends = \['oij-w1'\]: a file extends one of our scenarios"),
    ],
)
def test_a_file_extends_what_there_is(tmp_path: Path, extended: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(written(tmp_path, f"extends = {extended}\n"))


@pytest.mark.parametrize(("written_as", "meant"), [("extend", "extends"), ("studdy", "study")])
def test_a_key_that_only_files_have_is_found_by_a_near_one(
    tmp_path: Path, written_as: str, meant: str
) -> None:
    with pytest.raises(ConfigError, match=f"{written_as}: there is no such key; .*'{meant}'"):
        load(written(tmp_path, f"{written_as} = 'oij-w1'\n"))


NUMBERS = [
    "rows", "seed", "processes", "network.cores", "network.latency", "network.bandwidth",
    "feeding.disorder", "feeding.rate_tps", "recovery.interval",
]  # fmt: skip


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", ["true", "false"])
def test_true_is_no_number(tmp_path: Path, key: str, value: str) -> None:
    path = written(tmp_path, f"{BASE}{key} = {value}")
    with pytest.raises(ConfigError, match=f"mine.toml: {key} = {value.title()}: [a-z ]*"):
        load(path)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("bind.W = 1.5", r"bind.W = 1.5: must be a number of tuples such as '1000' or a time such"),
        ("bind.W = true", "bind.W = True: must be a number of tuples"),
        ("silence = '1 s'", "silence = '1 s': must be at least 3 s and at most a day"),
        ("recovery.interval = '0 s'", "recovery.interval = '0 s': must be at least 1 ns"),
        ("feeding.disorder = '-1 ms'", "feeding.disorder = '-1 ms': must be at least 0 and"),
    ],
)
def test_a_wrong_length_or_time_is_shown_as_it_was_written(
    tmp_path: Path, setting: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"mine.toml: {message}"):
        load(written(tmp_path, f"{BASE}{setting}\n"))


def test_a_list_that_is_too_short_is_refused_in_words(tmp_path: Path) -> None:
    path = written(tmp_path, 'extends = "oij-fig13"\nstudy.axis.values = []\n')
    with pytest.raises(ConfigError, match=r"axis.values = \[\]: at least 1 must be there"):
        load_study(path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("scales = 3", "scales = 3"),
        ("scales.laptop = 'rows = 1'", "scales.laptop = 'rows = 1'"),
        ("study = [1]", r"study = \[1\]"),
        ("scales.laptop.study = 3", "study = 3"),
        ("study.words = 3", "study.words = 3"),
    ],
)
def test_what_is_no_section_where_one_belongs_is_refused(
    tmp_path: Path, text: str, key: str
) -> None:
    path = written(tmp_path, BASE + text)
    with pytest.raises(ConfigError, match=rf"mine.toml: {key}: a section is needed, of keys and"):
        load_study(path)


@pytest.mark.parametrize("value", ["[]", "['spo_join', 'kp_oij']", "{}", "5"])
def test_a_topology_is_given_by_one_name(tmp_path: Path, value: str) -> None:
    path = written(tmp_path, f"topology = {value}\n" + BASE)
    with pytest.raises(ConfigError, match=r"topology = .*: input should be a valid string"):
        load(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study.variants.'a b' = 3", "variants.a b = 3: .*; there are set, measure"),
        ("study.variants.a.set = 3", "variants.a.set = 3: input should be a valid dictionary"),
        ("study.variants.a.st = 3", "variants.a.st: there is no such key; did you mean 'set'"),
        ("study.variants.a.pes = 3", r"variants.a.pes: there .*; what .* set = \{ pes = ... \}"),
        ("study.panels = [{ rows = 3 }]", r"panels.0.rows: .* as in set = \{ rows = ... \}"),
        ("study.variants.a.label = {st = 3}", "variants.a.label = .* should be a valid string"),
    ],
)
def test_a_mistake_in_a_named_section_is_refused(tmp_path: Path, text: str, message: str) -> None:
    study = "study.axis = { label = 'x', values = [1], keys = ['seed'] }\n"
    path = written(tmp_path, BASE + study + "study.measure = 'tuples'\n" + text)
    with pytest.raises(ConfigError, match=message):
        load_study(path)


def test_the_ending_of_a_file_may_be_in_capitals(tmp_path: Path) -> None:
    assert load(written(tmp_path, BASE, name="MINE.TOML")).name == "MINE"


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert load(written(tmp_path, BASE, start=b"\xef\xbb\xbf")).query == QUERY


@pytest.mark.parametrize("start", [b"\xff\xfe", b"\xfe\xff"])
def test_a_file_of_another_encoding_is_refused(tmp_path: Path, start: bytes) -> None:
    with pytest.raises(ConfigError, match=r"mine.toml is not TOML: 'utf-8' codec"):
        load(written(tmp_path, BASE, start=start))


HUGE = 99999999999999999999


def test_a_count_is_one_that_a_machine_has_room_for(tmp_path: Path) -> None:
    path = written(tmp_path, BASE + f"feeding.rate_tps = {HUGE}")
    words = rf"feeding.rate_tps = '?{HUGE}'?: input should be less than or equal to 92233"
    with pytest.raises(ConfigError, match=words):
        load(path)
    config = load(written(tmp_path, BASE))
    with pytest.raises(ConfigError, match=words):
        change(config, {"feeding.rate_tps": str(HUGE)})


BAD_NAMES = [
    "../evil",
    "a/b",
    "/tmp/x",
    "..",
    ".hidden",
    "",
    "a\\b",
    "a b",
    "a\0",
    "x" * 101,
    "a\n",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    values = {"query": QUERY, "streams": [{"files": ["x"]}]}
    with pytest.raises(ConfigError, match=r"name = .*letters, digits") as error:
        build(values | {"name": name}, where="here")
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match=r"streams.0.name = .*letters, digits"):
        build(values | {"streams": [{"files": ["x"], "name": name}]}, where="here")
    with pytest.raises(ValueError, match="letters, digits"):
        StreamConfig(name=name, files=("x",))
    with pytest.raises(DataError, match=r"stream name .*letters, digits"):
        RawSource(name=name, paths=["x.parquet"])


def test_a_synthetic_stream_has_times_of_its_own() -> None:
    stream = {"synthetic": {"rows": 9, "fields": {"x": "uniform(0, 9)"}}}
    assert build({"query": QUERY, "streams": [stream | {"time": "ts"}]}, where="here")
    with pytest.raises(ConfigError, match=r"streams\.0\.time = 'at': a synthetic stream has times"):
        build({"query": QUERY, "streams": [stream | {"time": "at"}]}, where="here")


def test_a_name_in_a_file_or_a_setting_is_refused_alike(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"name = '../evil': at most 100 letters"):
        load(written(tmp_path, 'name = "../evil"\n' + BASE))
    config = load(written(tmp_path, BASE))
    with pytest.raises(ConfigError, match=r"name = '../evil': at most 100 letters"):
        change(config, {"name": "../evil"})


@pytest.mark.parametrize("name", ["my scenario.toml", "größe.toml", "a+b.toml", ".x.toml"])
def test_a_file_of_any_name_is_a_scenario(tmp_path: Path, name: str) -> None:
    loaded = load(written(tmp_path, BASE, name=name)).name
    assert loaded in ("my-scenario", "größe", "a-b", "x")


@pytest.mark.parametrize("key", ["loss", "loss_rate", "faults"])
def test_a_fault_of_the_network_is_one_of_the_faults(tmp_path: Path, key: str) -> None:
    config = load(written(tmp_path, BASE))
    hint = r"goes in faults, as in faults = \[\{ kind = \"loss\", rate = 0.1 \}\]$"
    with pytest.raises(ConfigError, match=rf"network.{key}: there is no such key; .* {hint}"):
        change(config, {f"network.{key}": 0.1})
    with pytest.raises(ConfigError, match=r"bandwith: there is no such key; .* links$"):
        change(config, {"network.bandwith": 1})
    with pytest.raises(ConfigError, match="a list can also be set as a whole, as in faults = "):
        change(config, {f"faults.{key}": 0.1})


def test_a_parameter_beside_the_keys_of_a_file_is_one_of_the_parameters(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pes: there .* as in parameters = \{ pes = ... \}$"):
        load(written(tmp_path, f"pes = 4\n{BASE}"))


@pytest.mark.parametrize("place", ["1", "first"])
def test_a_place_that_a_list_has_not_is_refused(tmp_path: Path, place: str) -> None:
    config = load(written(tmp_path, BASE))
    with pytest.raises(ConfigError, match=rf"streams.{place}.where: '{place}' is none of its 1,"):
        change(config, {f"streams.{place}.where": "x > 1"})


def test_settings_that_contradict_each_other_are_refused_without_all_of_the_others() -> None:
    with pytest.raises(ConfigError, match=r"^settings: clock = 'live' is for actors in processes"):
        change(load("spo-q3", scale="smoke"), {"clock": "live"})


def test_a_network_is_a_preset_by_its_name_alone() -> None:
    config = build({"query": QUERY, "streams": [{"files": ["x"]}], "network": "wan"}, where="test")
    assert config.network.preset == "wan"
    changed = change(config, {"network": "rack", "network.latency": "2 ms"}).network
    assert (changed.preset, changed.latency) == ("rack", 2_000_000)
    with pytest.raises(ConfigError, match=r"network.preset = 'moon': input should be 'same-host'"):
        change(config, {"network": "moon"})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("feeding", "feeding = 'fast': a section is needed, of keys and values; there are batch_"),
        ("faults", "faults = 'fast': a list is needed"),
        ("recovery", "recovery = 'fast': a section is needed, .* there are guarantee, interval"),
    ],
)
def test_one_word_for_a_section_is_refused_with_its_keys(key: str, message: str) -> None:
    config = build({"query": QUERY, "streams": [{"files": ["x"]}]}, where="test")
    with pytest.raises(ConfigError, match=message):
        change(config, {key: "fast"})


def test_a_stream_comes_from_one_place() -> None:
    with pytest.raises(ValueError, match="one of files, synthetic and table"):
        StreamConfig(files=("x",), table="3 tuples")


@cache
def validator() -> Draft202012Validator:
    schema = js.schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def complaints(values: dict[str, Any]) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(values)]


def test_every_scenario_of_the_catalog_fits() -> None:
    for name, path in catalog().items():
        assert complaints(parse_toml(path.read_text(encoding="utf-8"))) == [], name


@pytest.mark.parametrize(
    ("toml", "where"),
    [
        ("rowz = 3", "$"),
        ("rows = 0", "$.rows"),
        ("network = { latency = true }", "$.network.latency"),
        ("scales.smoke.network.preset = 'moon'", "$.scales.smoke.network.preset"),
        ("topology = 'split_join'\nparameters = { fanout = 1 }", "$.parameters.fanout"),
        ("topology = 'split_join'\nparameters = { fnout = 2 }", "$.parameters"),
        ("study.axis.logg = true", "$.study.axis"),
    ],
)
def test_a_mistake_is_found_where_it_is(toml: str, where: str) -> None:
    assert [line.partition(":")[0] for line in complaints(parse_toml(toml))] == [where]


def test_keys_have_the_meanings_of_their_docstrings() -> None:
    schema = js.schema()
    described = {
        f"{name}.{key}": value.get("description")
        for name, section in [("", schema), *schema["$defs"].items()]
        for key, value in section.get("properties", {}).items()
    }
    assert described["NetworkConfig.cores"] == "Cores of each site."
    assert "such as joiner.*;" in str(described["Loss.sender"])
    without = {key for key, text in described.items() if not text}
    assert without == {".study", "Changes.study"}  # a section with a description of its own


def test_every_key_of_a_run_or_a_study_has_a_meaning_of_its_own() -> None:
    schema = js.schema()
    for name, section in [("", schema), *schema["$defs"].items()]:
        keys = section.get("properties", {}).values()
        texts = [text for key in keys if (text := key.get("description"))]
        if not name.endswith("Survey"):  # theirs are described in groups
            assert len(set(texts)) == len(texts), name


def test_a_key_of_a_section_that_is_not_there_yet_begins_it() -> None:
    config = change(load("oij-w1"), {"recovery.interval": "5 ms"})
    assert config.recovery is not None
    assert config.recovery.interval == 5_000_000


def test_a_link_with_jitter_has_it_whatever_the_preset() -> None:
    links = [{"a": "x", "b": "y", "jitter": "5 ms"}]
    config = change(load("oij-w1"), {"network": {"preset": "wan", "links": links}})
    network = build_network(config.network, ["x", "y", "z"])
    assert not network.edges["x", "y"]["link"].latency.is_constant
