from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, _BROWSERS)), None)
"""A Chromium, or None: the tests in it need one, which `pip` does not bring."""

collect_ignore = [] if BROWSER else ["pages"]


def pytest_collection_finish() -> None:
    """Have Python's search for cycles pass over what is there to stay; it took 8 % of the time."""
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_sessionfinish() -> None:
    """Let it find them all at the end, or DuckDB reports that its objects are left."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that pages were not looked at."""
    if not BROWSER:
        terminalreporter.write_line("no Chromium was found: tests/pages was left out")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark for the whole test run: starting it takes seconds.

    Whatever may have Spark prepare data asks for it, the command line's tests too.
    """
    from spark_bridge.session import SessionOptions, spark_session

    with spark_session(SessionOptions(quick_start=True)) as session:
        yield session


@pytest.fixture
def prepared_once(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave streams that the test has Spark prepare to later tests that want the same."""
    monkeypatch.setenv("JOINSIM_PREPARED", str(tmp_path_factory.getbasetemp() / "prepared"))


@pytest.fixture
def points_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the points of studies in this process: two others take seconds to start, for each study.

    Side by side they come to the same: `tests/scenarios/study/test_point_runs`.
    """
    from scenarios.study import point_runs

    monkeypatch.setattr(point_runs, "usable_cores", lambda: 1)


@pytest.fixture(scope="session")
def ray_running() -> Iterator[None]:
    """One Ray for the whole test run, with room for three processes."""
    from actors.hosting.ray_cluster import ray_cluster

    with ray_cluster(processes=3):
        yield


GROUPS = {
    "spark": "spark",
    "ray_running": "ray",
    "advice": "advice",
    "cluster": "cluster",
    "installed": "wheel",
    "site": "site",
}
"""What takes seconds to make and many tests share, to the group of those tests."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share such a thing in one process where several run tests: it is made once.

    One that needs two of them goes where the first is.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        shared = next((group for name, group in GROUPS.items() if name in fixtures), None)
        if shared:
            item.add_marker(pytest.mark.xdist_group(shared))


# No deadline: the first example of a kernel compiles it. Derandomised: a run of the tests repeats.
settings.register_profile("joinsim", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("joinsim")
