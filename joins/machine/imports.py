"""What a process of ours leaves unloaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType


class _Hidden:
    """Finds no module of a *package*; one of Python's finders of modules."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if f"{name}.".startswith(f"{self._package}."):
            raise ModuleNotFoundError(f"{self._package} is not to be loaded", name=name)


def leave_out_unused() -> None:
    """Have pyarrow believe that there is no pandas, and numba no scipy.

    To load them takes half a second and a fifth of one. pyarrow loads pandas with the first array
    that it converts, in case that is one of pandas's; numba loads scipy with the first kernel, to
    know whether it has a faster inner product for covariances. Both can be imported later. For
    processes of our own alone: in anybody else's they may be wanted.
    """
    with _hidden("pandas"):
        import pyarrow as pa

        pa.array([0]).to_numpy()  # pyarrow looks for it now, and never again
    with _hidden("scipy.linalg"):
        import numba.np.arraymath  # noqa: F401


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    if package in sys.modules:
        yield
        return
    hidden = _Hidden(package)
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)
