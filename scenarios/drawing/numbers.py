"""Numbers as they stand on axes and bars."""

from __future__ import annotations


def short(value: float) -> str:
    """Say *value* to three digits with a letter for thousands, millions and so on."""
    for scale, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"
