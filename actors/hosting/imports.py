"""Modules that our processes never load, and modules that they load in the background."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class _Hidden:
    """Finds no module of a *package*; one of Python's finders of modules."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if f"{name}.".startswith(f"{self._package}."):
            raise ModuleNotFoundError(f"{self._package} is not to be loaded", name=name)


class _WithoutScipy:
    """Hides scipy from the module of numba that looks for it; one of Python's module finders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "numba.np.arraymath":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                with _hidden("scipy.linalg"):
                    execute(module)

            loader.exec_module = exec_module
        return spec


def leave_out_unused() -> None:
    """Hide pandas from pyarrow, and scipy from numba.

    To load them takes half a second and a fifth of one. pyarrow loads pandas with the first array
    that it converts, in case that is one of pandas's; numba loads scipy with the first kernel that
    it compiles, to know whether it has a faster inner product for covariances. Both can be imported
    later. For processes of our own alone: in anybody else's they may be wanted.
    """
    sys.meta_path.insert(0, _WithoutScipy())
    with _hidden("pandas"):
        import pyarrow as pa

        pa.array([0]).to_numpy()  # pyarrow looks for it now, and never again


def import_meanwhile(*modules: str) -> None:
    """Import *modules*, by their names, while this thread waits or is in kernels.

    For what is needed later. What is wrong with one is left to the import where it is needed.
    """
    missing = [module for module in modules if module not in sys.modules]
    if missing:
        threading.Thread(target=_import, args=(missing,), daemon=True).start()


def _import(modules: Sequence[str]) -> None:
    for module in modules:
        with suppress(Exception):
            importlib.import_module(module)


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
