"""The colours of pages and figures, by name, on light and on dark ground."""

from __future__ import annotations

COLOURS = {
    "ink": ("#1f2329", "#e6e8ec"),
    "muted": ("#69707a", "#9aa2ad"),
    "line": ("#c9ced6", "#454b55"),
    "panel": ("#f2f4f7", "#1e232b"),
    "paper": ("#fefefe", "#14171c"),
    "blue": ("#2f6fb5", "#6ea8e6"),
    "orange": ("#d9762b", "#f0a060"),
    "amber": ("#ad550f", "#f0a060"),
    "green": ("#2d7a4c", "#6cc492"),
    "purple": ("#7f5fb0", "#b39ae0"),
    "red": ("#c4383f", "#f07d80"),
    "teal": ("#1f8f98", "#5cc4cb"),
    "brown": ("#8b6b4a", "#c4a27e"),
    "pink": ("#c75b96", "#e898c4"),
}
"""Name to the colour on light and on dark ground; amber is orange that can be read as text."""

LIGHT = {name: light for name, (light, _) in COLOURS.items()}
SERIES = ("blue", "orange", "green", "purple", "red", "teal", "brown", "pink")
"""Colours of lines and ports, in the order of their use."""
