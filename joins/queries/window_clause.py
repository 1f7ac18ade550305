"""Windows as a query spells them: one for all streams, or one for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from joins.queries.windows import Window, WindowError, read_extent


@dataclass(frozen=True, kw_only=True)
class WindowClause:
    """A window as a query spells it; *slide* and *length* may be names that `bind` gives values.

    A plain number counts tuples and a quantity such as ``10 min`` is event time. SPO-Join's Q1
    writes ``'10' ON '60'`` and means minutes in its text, but its experiments give that query
    windows by count; so a number without a unit is a count here.
    """

    slide: str
    length: str
    precise: bool = False

    def __str__(self) -> str:
        precise = " PRECISE" if self.precise else ""
        return f"SLIDE INTERVAL '{self.slide}' ON '{self.length}'{precise}"

    @property
    def names(self) -> set[str]:
        """Slide and length as spelt, among them the names that may be bound."""
        return {self.slide, self.length}

    def bind(self, values: dict[str, str]) -> WindowClause:
        """Give names their values."""
        return replace(
            self,
            slide=values.get(self.slide, self.slide),
            length=values.get(self.length, self.length),
        )

    @property
    def window(self) -> Window:
        """The window.

        Raise :exc:`joins.queries.windows.WindowError` when a name is not bound, or the window
        cannot be.
        """
        slide_kind, slide = read_extent(self.slide)
        length_kind, length = read_extent(self.length)
        if slide_kind != length_kind:
            raise WindowError("slide and length must both count tuples or both be times")
        return Window(
            kind=length_kind,
            length=length,
            slide=slide,
            semantics="precise" if self.precise else "sliding",
        )


@dataclass(frozen=True, kw_only=True)
class StreamWindows:
    """A window for each stream: ``WINDOW R AS (...), S AS (...)``.

    Attributes
    ----------
    streams, clauses
        Names as the query lists them here, and the window of each.
    """

    streams: tuple[str, ...]
    clauses: tuple[WindowClause, ...]

    def __str__(self) -> str:
        return ", ".join(
            f"{stream} AS ({clause})"
            for stream, clause in zip(self.streams, self.clauses, strict=True)
        )

    @property
    def names(self) -> set[str]:
        """Slides and lengths as spelt, among them the names that may be bound."""
        return {name for clause in self.clauses for name in clause.names}

    def bind(self, values: dict[str, str]) -> StreamWindows:
        """Give names their values."""
        return replace(self, clauses=tuple(clause.bind(values) for clause in self.clauses))
