"""Rules over the source itself: who may import whom, and what a simulated run may not touch."""

from __future__ import annotations

import ast
import warnings
from functools import cache
from pathlib import Path

import grimp
import networkx as nx
import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("joinsim", "scenarios", "spark_bridge", "topologies", "netsim", "actors", "joins")
SIMULATED = ("joins", "actors", "netsim", "topologies")
"""Packages that run inside virtual time."""

HOSTS_OWN = {
    ROOT / "actors" / "hosting" / name
    for name in (
        "descendants.py", "inline.py", "links.py", "live/post.py", "mesh.py", "ray_agent.py",
        "ray_cluster.py", "ray_processes.py", "saved_run.py",
    )
}  # fmt: skip
"""What actors never see: how long each of them took, a live run's time, how long a cluster or a
process has been silent, when a run was last saved, and the secrets by which processes know each
other."""

BANNED = {
    "time": "context.now",
    "random": "context.rng",
    "datetime": "context.now",
    "uuid": "the message's number",
    "secrets": "context.rng",
}
"""Modules a simulated run may not import, and what to use."""


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    paths = (path for package in SIMULATED for path in sorted((ROOT / package).rglob("*.py")))
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def test_imports_point_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES)
    imports = nx.DiGraph(
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if not importer.startswith(f"{imported}.")
    )
    circles = [sorted(one) for one in nx.strongly_connected_components(imports) if len(one) > 1]
    assert circles == []


def test_nothing_simulated_reads_a_clock_or_draws_without_a_seed() -> None:
    found = []
    for path, tree in modules():
        if path in HOSTS_OWN:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            found += [
                f"{path.relative_to(ROOT)}:{node.lineno}: {name} is banned, use {BANNED[name]}"
                for name in names
                if name in BANNED
            ]
    assert not found, "\n".join(found)


def test_nothing_simulated_depends_on_the_builtin_hash() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: hash() is banned, use joins.hashing"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hash"
    ]
    assert not found, "\n".join(found)


def test_no_file_but_the_parser_and_the_oracle_knows_an_operator_by_its_class() -> None:
    """So a new one is written in the four files that CONTRIBUTING names, and nowhere else."""
    knowing = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "joins.queries.conditions"
        for alias in node.names
        if alias.name in ("Band", "ComparisonOperator")
    }
    assert knowing == {"joins/oracle/match.py", "joins/queries/parser.py"}


def test_every_list_of_our_packages_has_all_of_them() -> None:
    """No package could hold the one list that all others need before they know where it is."""
    lists = {
        str(path.relative_to(ROOT)): {*ast.literal_eval(node.value), "joinsim"}
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PACKAGES"
    }
    assert len(lists) > 1
    assert all(listed == set(PACKAGES) for listed in lists.values()), lists


@pytest.mark.parametrize("package", PACKAGES)
def test_a_warning_of_numpy_about_our_code_fails_a_test(package: str) -> None:
    """As a number that overflows there is wrong; what libraries do is theirs."""
    with warnings.catch_warnings(record=True):
        warnings.warn_explicit("overflow", RuntimeWarning, "library.py", 1, module=f"not_{package}")
    for module in (package, f"{package}.one.of_its"):
        with pytest.raises(RuntimeWarning, match="overflow"):
            warnings.warn_explicit("overflow", RuntimeWarning, "ours.py", 1, module=module)
