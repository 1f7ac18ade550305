from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark for the whole test run: starting it takes seconds."""
    from spark_bridge.session import SessionOptions, spark_session

    with spark_session(SessionOptions(quick_start=True)) as session:
        yield session


@pytest.fixture(scope="session")
def ray_running() -> Iterator[None]:
    """One Ray for the whole test run, with room for three processes."""
    from actors.hosting.ray_cluster import ray_cluster

    with ray_cluster(processes=3):
        yield


# No deadline: the first example of a kernel compiles it. Derandomised: a run of the tests repeats.
settings.register_profile("joinsim", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("joinsim")
