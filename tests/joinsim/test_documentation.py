"""Every public name is documented, and the examples in docstrings and in the README run."""

from __future__ import annotations

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import joinsim

README = Path(__file__).parents[2] / "README.md"
MODULES = sorted({"joinsim.checks", *joinsim._HOMES.values()})
GROUPS = {
    "actors.hosting.ray_cluster": "ray",
    "actors.hosting.processes": "ray",
    "joinsim._streams": "spark",
}
"""Modules whose examples start Ray or Spark, which one process of the tests has."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xdist_group(GROUPS.get(name, "examples")))
        for name in MODULES
    ],
)
def test_examples_in_docstrings_run(name: str) -> None:
    module = import_module(name)
    globals_ = {"js": joinsim}
    # What `joinsim` has from other modules is tested with those.
    finder = doctest.DocTestFinder(exclude_empty=True, recurse=module is not joinsim)
    for test in finder.find(module, extraglobs=globals_):
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test)
        assert runner.summarize(verbose=False).failed == 0, test.name


@pytest.mark.parametrize("name", joinsim.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    value = getattr(joinsim, name)
    _, section, examples = inspect.cleandoc(value.__doc__ or "").partition("Examples\n--------\n")
    assert section, f"{name} has no section of examples"
    assert ">>> " in examples


def test_the_reference_has_every_public_name() -> None:
    page = (README.parent / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\.\. auto\w+:: joinsim\.(\w+)", page, re.MULTILINE))
    assert documented == set(joinsim.__all__)


def test_python_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})
