"""Arguments of a wrong type are refused by name, by every public function and method."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, get_args

import numpy as np
import pytest

import joinsim as js
from joinsim import _calibration
from joinsim._arguments import _convert, _hints

QUERY = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
DATA = {"T": {"x": [3, 1, 2]}}
CLASSES = (js.Scenario, js.Run, js.StudyRun, js.Comparison, js.Advice, js.EngineComparison)


class Wrong:
    """Of no type that any parameter has."""

    def __repr__(self) -> str:
        return "<wrong>"


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield all functions, constructors and methods that a caller may call, by name."""
    yield "checks.check_topology", js.checks.check_topology
    for name in js.__all__:
        value = getattr(js, name)
        if isinstance(value, FunctionType):
            yield name, value
    for kind in CLASSES:
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") or (kind is js.Scenario and name == "__init__"):
                yield f"{kind.__name__}.{name}", method


PARAMETERS = [
    pytest.param(function, parameter, id=f"{name}-{parameter}")
    for name, function in public()
    for parameter in inspect.signature(function).parameters
    if parameter in _hints(function)
]


@pytest.mark.parametrize(("function", "parameter"), PARAMETERS)
def test_every_parameter_refuses_what_it_cannot_be(
    function: Callable[..., Any], parameter: str
) -> None:
    args, kwargs = [], {}
    for name, one in inspect.signature(function).parameters.items():
        if name == parameter or one.default is one.empty:
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL):
                args.append(Wrong())
            elif one.kind is one.KEYWORD_ONLY:
                kwargs[name] = Wrong()
    with pytest.raises(js.ConfigError, match=rf"\b{parameter} = .*<wrong>.*: pass "):
        function(*args, **kwargs)


_ANY_NUMBER = ("number", "bind")
"""Parameters whose numbers are judged later: points of a study, and values in a query."""


def numbers(hint: Any) -> bool:
    return hint in (int, float) or any(map(numbers, get_args(hint)))


NUMBERS = [one for one in PARAMETERS if numbers(_hints(one.values[0])[str(one.values[1])])]


@pytest.mark.parametrize(("function", "parameter"), NUMBERS)
@pytest.mark.parametrize("value", [-1, -0.5, float("nan")])
def test_every_number_has_a_least_value(
    function: Callable[..., Any], parameter: str, value: float
) -> None:
    hint = _hints(function)[parameter]
    if parameter not in _ANY_NUMBER:
        for wrong in (value, {"core_hour": value}):
            with pytest.raises(ValueError, match=r"^$"):
                _convert(wrong, hint)


def test_there_are_parameters_to_try() -> None:
    assert len(PARAMETERS) > 150
    assert len(NUMBERS) > 25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"out": 5}, "out = 5: pass text, a path or None"),
        ({"out": "a\0b"}, r"out = 'a\x00b': pass text, a path or None"),
        ({"seed": "x"}, "seed = 'x': pass a whole number of at least 0"),
        ({"pairs": 1}, "pairs = 1: pass True or False"),
        ({"sink": "both"}, "sink = 'both': pass 'partitioned' or 'single'"),
        ({"network": 5}, "network = 5: pass text or a mapping from names to values"),
        (
            {"bind": {"W": 1.5}},
            "bind = {'W': 1.5}: pass a mapping from names to values (each: text or a whole number) "
            "or None",
        ),
        (
            {"faults": ["loss"]},
            "faults = ['loss']: pass a list (each: a mapping from names to values)",
        ),
        (
            {"topology": dict},
            "topology = <class 'dict'>: pass text, a class derived from Topology, a Topology or "
            "None",
        ),
        (
            {"query": None, "rows": 1.5},
            "query = None: pass text; rows = 1.5: pass a whole number above 0 or None",
        ),
        ({"streams": [1]}, "streams = [1]: pass a mapping from names to values"),
    ],
)
def test_the_message_says_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(js.ConfigError) as raised:
        js.run(**{"query": QUERY, "streams": DATA} | arguments)
    assert str(raised.value) == message


def test_a_calibration_looks_at_its_folder_before_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It measures for a quarter of an hour, which is not to be lost."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr(_calibration, "_measure_structures", lambda *_: pytest.fail("measured"))
    with pytest.raises(js.OutputError, match=f"cannot write to {tmp_path}: "):
        js.calibrate(tmp_path / "mine.toml", live=False)


def test_a_calibration_takes_as_few_tuples_as_the_command_does() -> None:
    with pytest.raises(js.ConfigError, match="rows = 999: pass a whole number of at least 1000"):
        js.calibrate(rows=999, profile="nothing.toml")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: js.run(QUERY, DATA, topolgy="split_join"),
            "topolgy: did you mean 'topology'? no ",
        ),
        (lambda: js.run(QUERY, DATA, topology="bchj", sed=5), "bchj: sed: did you mean 'seed'? "),
        (
            lambda: js.run(QUERY, DATA, topology="chain_index", index="b_plus_tree"),
            "parameters of chain_index: index: there is no such key; did you mean 'sub_index'?",
        ),
        (
            lambda: js.run(QUERY, DATA, topology="split_join", pess=5),
            "split_join: pess: there is no such key; did you mean 'pes'?",
        ),
        (
            lambda: js.run(QUERY, DATA, topology="split_join", bandwidth="1 Mbps"),
            "no such key; there are pes, nodes, index, fanout; but there is network.bandwidth",
        ),
        (
            lambda: js.run(QUERY, DATA, rate_tps=5),
            "; but there is feeding.rate_tps",
        ),
        (
            lambda: js.advise(QUERY, DATA, budget=5),  # nearer than the parameter byte_budget
            "budget: did you mean 'budget_s'? no system compared here has such a parameter; there",
        ),
        (lambda: js.advise(QUERY, DATA, machine=5), "machine: did you mean 'machines'? no system"),
        (lambda: js.scenario("oij-w1").run(adress="x"), "adress: did you mean 'address'? there"),
    ],
)
def test_a_keyword_that_is_nearly_a_parameter_is_found(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(js.ConfigError, match=re.escape(message)):
        call()


def test_a_value_that_is_long_is_cut_and_in_one_line() -> None:
    with pytest.raises(js.ConfigError) as raised:
        js.run(QUERY, np.arange(10_000).reshape(100, 100))  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_numbers_and_columns_of_numpy_are_as_good_as_lists() -> None:
    swept = js.sweep(
        QUERY,
        DATA,
        over={"pes": np.arange(1, 3)},  # type: ignore[dict-item]
        seeds=np.int64(1),  # type: ignore[arg-type]
        topology="split_join",
        processes=1,
    )
    assert len(swept.points) == 2


def test_python_itself_reports_what_is_missing_or_unknown() -> None:
    with pytest.raises(TypeError, match=r"run\(\) missing 1 required positional argument"):
        js.run(QUERY)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"fuzz\(\) got an unexpected keyword argument 'word'"):
        js.fuzz(word=3)  # type: ignore[call-arg]


def test_a_function_keeps_its_signature_and_can_be_pickled() -> None:
    assert "topology: 'Named | None' = None" in str(inspect.signature(js.run))
    assert pickle.loads(pickle.dumps(js.run)) is js.run
