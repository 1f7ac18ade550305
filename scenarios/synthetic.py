"""Synthetic streams: described in a few words, with the same tuples on every machine.

Value i of a field with seed s is drawn from ``splitmix64((s << 48) ^ i)``, so it depends on these
two alone, and a longer stream begins with a shorter one. Field k of a stream with seed s has the
seed s + k.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from actors.whole_files import WholeTable, writing
from joins.hashing import mix
from joins.queries.interval import TIME_FIELD
from topologies.quantities import NUMBER, Duration, TimeFromZero

_CALL = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")
_MILLIONTHS = 6


def opposed(other: np.ndarray, bits: np.ndarray, rate: float) -> np.ndarray:
    """Return values that a chosen share of pairs orders against *other*.

    Of two tuples with fields X (standard normal, *other*) and Y (the result, too), X1 > X2 and
    Y1 < Y2 holds with probability *rate*, which is arccos(correlation) / 2π. So a query of two
    opposite inequalities has that match rate.
    """
    correlation = np.cos(2 * np.pi * rate)
    rest = np.sqrt(1 - correlation**2)
    values: np.ndarray = correlation * other + rest * _standard_normal(bits)
    return values.round(_MILLIONTHS)


def drifting(
    i: np.ndarray,
    bits: np.ndarray,
    mean: float,
    deviation: float,
    shift: float,
    first: float,
    tuples: float,
) -> np.ndarray:
    """Return normal numbers whose mean moves (PIM-Tree, section 5.2, Figure 13).

    Up to tuple number *first* it is *mean*; over the next *tuples* tuples it moves steadily to
    *mean* + *shift*, and stays there.
    """
    if deviation <= 0 or tuples < 1:
        raise ValueError("drifting: the deviation must be above 0, and the drift last a tuple")
    moved = np.clip((i - first) / tuples, 0, 1)
    return np.round(mean + shift * moved + deviation * _standard_normal(bits), _MILLIONTHS)


_MAX_NUMBER = 2**53
_MAX_RANKS = 10**7
"""Of a Zipf distribution, which has the share of each rank in memory."""
_MAX_SHAPE = 1_000
"""Of a gamma distribution, which adds up so many exponential values for each tuple."""


def parse(text: str) -> tuple[str, list[str]]:
    """Return a distribution's name and arguments; raise :exc:`ValueError` saying what there is."""
    call = _CALL.fullmatch(text)
    arguments = [part.strip() for part in call[2].split(",")] if call else []
    if not call or len(arguments) != _ARGUMENTS.get(call[1]):
        known = ", ".join(f"{name} ({count} arguments)" for name, count in _ARGUMENTS.items())
        raise ValueError(f"{text!r} is not a distribution; there are {known}")
    for argument in arguments[call[1] == "opposed" :]:  # whose first one names a field
        if not _is_number(argument):
            raise ValueError(f"{text!r}: {argument} is not a number from -2^53 to 2^53")
    return call[1], arguments


def _is_number(argument: str) -> bool:
    """Return whether *argument* is a number that a distribution takes."""
    try:
        return abs(float(argument)) <= _MAX_NUMBER
    except ValueError:
        return False


def _fraction(bits: np.ndarray) -> np.ndarray:
    """Return numbers in [0, 1) with 53 random bits."""
    return (bits >> np.uint64(11)) / 2**53


def _uniform(bits: np.ndarray, low: float, high: float) -> np.ndarray:
    n = int(high) - int(low) + 1
    if n < 1:
        raise ValueError(f"uniform({low:g}, {high:g}): the second must not be less than the first")
    return (bits % np.uint64(n)).astype(np.int64) + int(low)


def _skewed(bits: np.ndarray, low: float, high: float, power: float) -> np.ndarray:
    n = int(high) - int(low) + 1
    if n < 1 or power <= 0:
        raise ValueError(f"skewed({low:g}, {high:g}, {power:g}): low <= high, power above 0")
    rank = np.minimum((n * _fraction(bits) ** power).astype(np.int64), n - 1)
    return rank + int(low)


def _self_similar(bits: np.ndarray, n: float, skew: float) -> np.ndarray:
    """Draw as Gray et al. (SIGMOD 1994) do; PPOIJ calls *skew* s, and 0.5 is uniform."""
    if n < 1 or not 0 < skew <= 0.5:
        raise ValueError(f"self_similar({n:g}, {skew:g}): n 1 or more, skew above 0 up to 0.5")
    return _skewed(bits, 0, n - 1, np.log(skew) / np.log1p(-skew))


def _zipf(bits: np.ndarray, exponent: float, n: float) -> np.ndarray:
    if not 1 <= n <= _MAX_RANKS or exponent < 0:
        raise ValueError(f"zipf({exponent:g}, {n:g}): exponent 0 or more, n 1 to {_MAX_RANKS:,}")
    weights = np.cumsum(np.arange(1, int(n) + 1, dtype=np.float64) ** -exponent)
    ranks = np.searchsorted(weights, _fraction(bits) * weights[-1], side="right")
    limited: np.ndarray = np.minimum(ranks, int(n) - 1)
    return limited


def _real(bits: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.round(low + (high - low) * _fraction(bits), _MILLIONTHS)


def _normal(bits: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    if deviation <= 0:
        raise ValueError(f"normal({mean:g}, {deviation:g}): the deviation must be above 0")
    return np.round(mean + deviation * _standard_normal(bits), _MILLIONTHS)


def _gamma(bits: np.ndarray, shape: float, scale: float) -> np.ndarray:
    if shape != int(shape) or not 1 <= shape <= _MAX_SHAPE or scale <= 0:
        raise ValueError(
            f"gamma({shape:g}, {scale:g}): a whole shape from 1 to {_MAX_SHAPE:,}, a scale above 0"
        )
    total = np.zeros(len(bits))
    for _ in range(int(shape)):
        total -= np.log1p(-_fraction(bits))
        bits = mix(bits)
    return np.round(scale * total, _MILLIONTHS)


def _standard_normal(bits: np.ndarray) -> np.ndarray:
    """Return normal numbers of mean 0 and deviation 1 (Box and Muller, 1958)."""
    radius = np.sqrt(-2 * np.log1p(-_fraction(bits)))
    normal: np.ndarray = radius * np.cos(2 * np.pi * _fraction(mix(bits)))
    return normal


DISTRIBUTIONS: dict[str, Callable[..., np.ndarray]] = {
    "uniform": _uniform,
    "skewed": _skewed,
    "zipf": _zipf,
    "self_similar": _self_similar,
    "real": _real,
    "normal": _normal,
    "gamma": _gamma,
}
"""Name to a function of random bits and the distribution's arguments."""
_ARGUMENTS = {name: len(signature(f).parameters) - 1 for name, f in DISTRIBUTIONS.items()}
_ARGUMENTS |= {"opposed": 2, "drifting": 5}  # of another field, and of the tuple's number


_MAX_SEED = 2**15
_MAX_ROWS = 10**10
"""A stream is generated to its end before a run, and a generator has no end of its own."""
_BLOCK_ROWS = 2**20


class SyntheticStream(BaseModel):
    """A stream to generate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Annotated[int, Field(ge=1, le=_MAX_ROWS), NUMBER]
    """Number of tuples."""
    seed: Annotated[int, Field(ge=0, lt=_MAX_SEED), NUMBER] = 1
    """Of its first field; the next has the next."""
    fields: Annotated[dict[str, str], Field(min_length=1)]
    """Field name to distribution: ``uniform(low, high)`` over whole numbers, both included;
    ``skewed(low, high, power)``, whole numbers, low + floor(n u^power); ``zipf(exponent, n)``,
    ranks 0 to n - 1; ``self_similar(n, skew)``, the same, of which the first share *skew* takes the
    share 1 - *skew*, and within it again; ``real(low, high)``, ``normal(mean, deviation)``,
    ``gamma(shape, scale)`` with a whole shape, fractions; ``opposed(FIELD, rate)``, fractions of
    which such a share of pairs is ordered otherwise than by FIELD, a normal field before it;
    ``drifting(mean, deviation, shift, first, tuples)``, normal ones whose mean moves by *shift*
    over so many tuples from number *first* on."""
    every: Duration = 1_000_000
    """Event time between one tuple and the next."""
    start: TimeFromZero = 0
    """Event time of the first."""

    @field_validator("fields")
    @classmethod
    def _known(cls, fields: dict[str, str]) -> dict[str, str]:
        for name, text in fields.items():
            if name in ("id", TIME_FIELD):
                raise ValueError(f"a field cannot be called {name!r}")
            parse(text)
        return fields

    @model_validator(mode="after")
    def _drawable(self) -> SyntheticStream:
        if self.start + self.rows * self.every > 2**63:
            raise ValueError(
                "the last event time is beyond the year 2262, where nanoseconds end: take fewer "
                "rows, less time between them (every), or an earlier start"
            )
        self.columns(rows=1)
        return self

    @property
    def seeds(self) -> range:
        """The seeds of its fields."""
        return range(self.seed, self.seed + len(self.fields))

    def columns(self, first: int = 0, rows: int = _MAX_ROWS) -> dict[str, np.ndarray]:
        """Return event times and fields of *rows* tuples from *first* on, fewer at the end."""
        i = np.arange(first, min(first + rows, self.rows))
        columns = {TIME_FIELD: self.start + i * self.every}
        for seed, (name, text) in zip(self.seeds, self.fields.items(), strict=True):
            function, arguments = parse(text)
            bits = mix(np.uint64(seed << 48) ^ i.astype(np.uint64))
            if function == "opposed":
                columns[name] = self._opposed(name, arguments, columns, bits)
            elif function == "drifting":
                columns[name] = drifting(i, bits, *map(float, arguments))
            else:
                columns[name] = DISTRIBUTIONS[function](bits, *map(float, arguments))
        return columns

    def _opposed(
        self, name: str, arguments: list[str], columns: dict[str, np.ndarray], bits: np.ndarray
    ) -> np.ndarray:
        other, rate = arguments[0], float(arguments[1])
        function, numbers = parse(self.fields[other]) if other in self.fields else ("", [])
        if other not in columns or function != "normal" or not 0 <= rate <= 0.5:
            raise ValueError(
                f"{name} = opposed({', '.join(arguments)}): give the name of a normal field that "
                "stands before it, and a rate from 0 to 0.5"
            )
        mean, deviation = (float(number) for number in numbers)
        return opposed((columns[other] - mean) / deviation, bits, rate)

    def write(self, folder: Path) -> Path:
        """Return the stream's raw Parquet file in *folder*, which is written if it is not there.

        The file is named after what is in it, and appears whole or not at all.
        """
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]
        path = folder / f"synthetic-{digest}.parquet"
        if not path.exists():
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            schema = pa.table(self.columns(rows=1)).schema
            with WholeTable(path, schema, compression="zstd") as file:
                for first in range(0, self.rows, _BLOCK_ROWS):
                    file.write(pa.table(self.columns(first, _BLOCK_ROWS)))
        return path
