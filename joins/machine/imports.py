"""What a process of ours leaves unloaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _Hidden:
    """Finds no pandas; one of Python's finders of modules."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not to be loaded", name=name)


def leave_out_pandas() -> None:
    """Have pyarrow believe that there is no pandas, which takes it half a second to load.

    pyarrow loads it with the first array that it converts, in case that is one of pandas's. For
    processes of our own alone: in anybody else's it may be.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _Hidden)
    try:
        import pyarrow as pa

        pa.array([0]).to_numpy()  # pyarrow looks for it now, and never again
    finally:
        sys.meta_path.remove(_Hidden)
