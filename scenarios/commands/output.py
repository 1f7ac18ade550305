"""How commands end: exit codes, and JSON on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from scenarios.failures import EXIT_FAIL, EXIT_PASS, EXIT_STOPPED, EXIT_UNKNOWN

_FROM_BEST = (EXIT_PASS, EXIT_UNKNOWN, EXIT_FAIL, EXIT_STOPPED)


def exit_code(passed: bool | None) -> int:
    """Return the exit code of a verdict; None is unknown."""
    if passed is None:
        return EXIT_UNKNOWN
    return EXIT_PASS if passed else EXIT_FAIL


def worst(codes: Iterable[int]) -> int:
    """Return the worst of several runs' exit codes; unknown when there is none."""
    return max(codes, key=_FROM_BEST.index, default=EXIT_UNKNOWN)


def print_json(value: dict[str, Any]) -> None:
    """Print *value* as the one JSON object on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
