"""Scale-up: one PE's segments, probed by several threads (SPO-Join, section 4.2, Algorithm 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from joins.indexes.immutable.segment import Segment
from joins.indexes.search import Brackets
from joins.matches import ProbeResult
from joins.threads import side_by_side


def probe_all(
    segments: Sequence[Segment],
    lo: Sequence[np.ndarray],
    hi: Sequence[np.ndarray],
    *,
    brackets: Sequence[Brackets | None] | None = None,
    threads: int = 1,
    **options: Any,
) -> list[ProbeResult]:
    """Probe every segment with the same probes; return what each finds, in the segments' order.

    A thread takes the next segment of the list whenever it is done with one. Segments never change,
    so they need no lock, and kernels hold no lock of the interpreter; what is found and the work it
    took are those of a single thread.

    Parameters
    ----------
    segments
        The list to deal out.
    lo, hi
        As for `Segment.probe`.
    brackets
        One for each segment, or None for none at all.
    threads
        How many work at once; 1 starts none.
    options
        Further arguments of `Segment.probe`, the same for all segments.

    Raises
    ------
    ValueError
        When *threads* is less than 1 or *brackets* are not one for each segment; and whatever
        `Segment.probe` raises.
    """
    if threads < 1:
        raise ValueError(f"threads is {threads}, expected at least 1")
    each = [None] * len(segments) if brackets is None else list(brackets)
    if len(each) != len(segments):
        raise ValueError(f"{len(each)} brackets for {len(segments)} segments; expected one each")

    def probe(place: int) -> ProbeResult:
        return segments[place].probe(lo, hi, brackets=each[place], **options)

    return side_by_side(probe, range(len(segments)), min(threads, len(segments)))
