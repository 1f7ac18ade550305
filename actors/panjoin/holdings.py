"""The subwindows of one worker, kept by commands: at the worker itself, or mirrored elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from actors.panjoin.payloads import Commands, Insert
from actors.panjoin.sides import Sides
from joins.indexes.panjoin.structure import StructureName
from joins.indexes.panjoin.subwindow import STRUCTURES, Subwindow, SubwindowShape
from joins.work import NO_WORK, Work


class Holdings:
    """Subwindows by stream and number, in the order of their creation.

    Parameters
    ----------
    shapes
        Per stream what its subwindows have in common.
    kinds
        Structures to keep; commands about others are passed over.
    """

    subwindow_type: type[Subwindow] = Subwindow

    def __init__(
        self,
        sides: Sides,
        shapes: tuple[SubwindowShape, ...],
        kinds: Collection[str] = tuple(STRUCTURES),
    ) -> None:
        self._sides = sides
        self._shapes = shapes
        self._kinds = kinds
        self._held: list[dict[int, Subwindow]] = [{} for _ in shapes]

    def take(self, commands: Commands) -> Work:
        """Create and insert as *commands* say."""
        work = NO_WORK
        for create in commands.create:
            if create.structure in self._kinds:
                self._held[create.stream][create.number] = self.subwindow_type(
                    self._shapes[create.stream],
                    create.structure,
                    first=create.first,
                    splitters=create.splitters,
                )
        for insert in commands.insert:
            subwindow = self._held[insert.stream].get(insert.number)
            if subwindow is not None:
                work += self._insert(subwindow, insert)
                if insert.fills:
                    work += subwindow.seal()
        return work

    def _insert(self, subwindow: Subwindow, insert: Insert) -> Work:
        columns = self._sides.columns(insert.stream, insert.batch)
        return subwindow.insert(columns, insert.batch.id)

    def expire(self, commands: Commands) -> None:
        """Let go of what *commands* say."""
        for expire in commands.expire:
            self._held[expire.stream].pop(expire.number, None)

    def get(self, stream: int, number: int) -> Subwindow:
        """Return one subwindow."""
        return self._held[stream][number]

    def of(self, stream: int, *, kind: StructureName | None = None) -> dict[int, Subwindow]:
        """Return the subwindows of a stream by number, all or of one kind."""
        return {
            number: subwindow
            for number, subwindow in self._held[stream].items()
            if kind is None or subwindow.kind == kind
        }

    def snapshot(self) -> list[dict[str, Any]]:
        """Return the subwindows as plain data."""
        return [
            {"stream": stream, "number": number, "subwindow": subwindow.snapshot()}
            for stream, held in enumerate(self._held)
            for number, subwindow in held.items()
        ]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Take over what `snapshot` returned."""
        self._held = [{} for _ in self._shapes]
        for held in state:
            subwindow = self.subwindow_type.restore(held["subwindow"])
            self._held[held["stream"]][held["number"]] = subwindow
