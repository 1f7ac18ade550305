"""Work that is measured: a keyed interval join of two synthetic streams, and two variants of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.hashing import mix

_KEYS = 50
_STEP_NS = 1_000_000
_SHIFT_NS = 501_000

AT_FULL_SPEED = {"feeding.batch_rows": 65_536, "batch_rows": 65_536, "linger_turns": 0}
"""Settings of ``oij-w1``: few messages, each so large that what a message costs does not show; none
waits to be full."""


@dataclass(frozen=True, kw_only=True)
class IntervalWork:
    """Pairs of equal keys whose event times are at most *within_ns* apart.

    Attributes
    ----------
    ts, key
        Per stream a column each, base stream first; ids are positions.
    settings
        What makes the scenario ``oij-w1`` the same work.
    """

    name: str
    ts: tuple[np.ndarray, np.ndarray]
    key: tuple[np.ndarray, np.ndarray]
    within_ns: int
    settings: dict[str, str]

    def __str__(self) -> str:
        return f"{self.name}, {len(self.ts[0]):,} a stream"

    @classmethod
    def of(cls, name: str, rows: int, *, within_ms: int = 100, hot: bool = False) -> IntervalWork:
        """Return the work on *rows* tuples a stream, one a millisecond, over 50 keys.

        Keys are uniform or, *hot*, the smallest of them makes up 37.6 % of the tuples.
        """
        i = np.arange(rows)
        streams = range(2)
        skewed = {f"streams.{s}.synthetic.fields.key": "skewed(0, 49, 4)" for s in streams}
        return cls(
            name=name,
            ts=(i * _STEP_NS, i * _STEP_NS + _SHIFT_NS),
            key=(_keys(1, i, hot), _keys(2, i, hot)),
            within_ns=within_ms * 1_000_000,
            settings={"bind.W": f"{within_ms} ms"} | (skewed if hot else {}),
        )


def _keys(seed: int, i: np.ndarray, hot: bool) -> np.ndarray:
    bits = mix((seed << 48) ^ i)
    if not hot:
        return (bits % np.uint64(_KEYS)).astype(np.int64)
    fraction = (bits >> np.uint64(11)) / 2.0**53
    return np.minimum((_KEYS * fraction**4).astype(np.int64), _KEYS - 1)


@dataclass(frozen=True)
class Totals:
    """What must be equal however it was computed."""

    pairs: int
    checksum: int

    @classmethod
    def of(cls, base: np.ndarray, probe: np.ndarray) -> Totals:
        """Return the totals of pairs of ids: the checksum does not depend on their order."""
        total = 0
        for part in np.array_split(np.arange(len(base)), max(1, len(base) >> 20)):
            mixed = mix((base[part].astype(np.int64) << 32) ^ probe[part])
            total += int(mixed.sum(dtype=np.uint64))
        return cls(len(base), total % (1 << 64))


def totals_of_counts(count: np.ndarray, fingerprint: np.ndarray) -> Totals:
    """Return pairs, and the checksum of what a base tuple each has found, in order of id."""
    tagged = mix(fingerprint ^ mix(np.arange(len(count))))
    return Totals(int(count.sum()), int(tagged.sum(dtype=np.uint64)))


PUBLISHED = {
    ("W1", 1_000_000): Totals(3_998_336, 1258833714615941485),
    ("W1", 5_000_000): Totals(20_005_928, 6370453778516979702),
    ("one second", 1_000_000): Totals(39_978_013, 7683608657026927936),
    ("hot key", 1_000_000): Totals(31_293_483, 4044659722237798382),
}
"""By work and rows: what every engine of the published comparison found."""
