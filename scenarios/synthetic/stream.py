"""Synthetic streams: a stream said in a few words, the same tuples on every machine.

Value i of a field with seed s is drawn from ``splitmix64((s << 48) ^ i)``, so that it depends on
nothing but the two, and a longer stream begins with a shorter one. Field k of a stream with seed s
has the seed s + k.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from joins.hashing import mix
from scenarios.quantities import Nanoseconds
from scenarios.synthetic.distributions import DISTRIBUTIONS, drifting, opposed, parse

TIME = "ts"
"""Column of the event time, nanoseconds."""

_MAX_SEED = 2**15
_MAX_ROWS = 10**10
"""A stream is generated to its end before a run, and a generator has no end of its own."""
_BLOCK_ROWS = 2**20


class SyntheticStream(BaseModel):
    """A stream to generate.

    Attributes
    ----------
    rows
        Number of tuples.
    seed
        Of its first field; the next has the next.
    fields
        Field name to distribution: ``uniform(low, high)`` over whole numbers, both included;
        ``skewed(low, high, power)``, whole numbers, low + floor(n u^power);
        ``zipf(exponent, n)``, ranks 0 to n - 1; ``self_similar(n, skew)``, the same, of which
        the first share *skew* takes the share 1 - *skew*, and within it again; ``real(low, high)``,
        ``normal(mean, deviation)``, ``gamma(shape, scale)`` with a whole shape, fractions;
        ``opposed(FIELD, rate)``, see `opposed`; ``drifting(mean, deviation,
        shift, first, tuples)``, see `drifting`.
    every, start
        Event time between one tuple and the next, and of the first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Annotated[int, Field(ge=1, le=_MAX_ROWS)]
    seed: Annotated[int, Field(ge=0, lt=_MAX_SEED)] = 1
    fields: Annotated[dict[str, str], Field(min_length=1)]
    every: Annotated[Nanoseconds, Field(ge=1)] = 1_000_000
    start: Annotated[Nanoseconds, Field(ge=0)] = 0

    @field_validator("fields")
    @classmethod
    def _known(cls, fields: dict[str, str]) -> dict[str, str]:
        for name, text in fields.items():
            if name in ("id", TIME):
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
        columns = {TIME: self.start + i * self.every}
        for seed, (name, text) in zip(self.seeds, self.fields.items(), strict=True):
            function, arguments = parse(text)
            if function == "opposed":
                columns[name] = self._opposed(name, arguments, columns, _bits(seed, i))
            elif function == "drifting":
                numbers = [float(argument) for argument in arguments]
                columns[name] = drifting(i, _bits(seed, i), *numbers)
            else:
                numbers = [float(argument) for argument in arguments]
                columns[name] = DISTRIBUTIONS[function](_bits(seed, i), *numbers)
        return columns

    def _opposed(
        self, name: str, arguments: list[str], columns: dict[str, np.ndarray], bits: np.ndarray
    ) -> np.ndarray:
        other, rate = arguments[0], float(arguments[1])
        function, numbers = parse(self.fields.get(other, "normal()"))
        if other not in columns or function != "normal" or not 0 <= rate <= 0.5:
            raise ValueError(
                f"{name} = opposed({', '.join(arguments)}): give the name of a normal field that "
                "stands before it, and a rate from 0 to 0.5"
            )
        mean, deviation = (float(number) for number in numbers)
        return opposed((columns[other] - mean) / deviation, bits, rate)

    def write(self, folder: Path) -> Path:
        """Write the stream as one raw Parquet file into *folder*, unless it is there, and name it.

        The file is named after what is in it, and appears whole or not at all.
        """
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]
        path = folder / f"synthetic-{digest}.parquet"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(f".{os.getpid()}")
            schema = pa.table(self.columns(rows=1)).schema
            with pq.ParquetWriter(fresh, schema, compression="zstd") as writer:
                for first in range(0, self.rows, _BLOCK_ROWS):
                    writer.write_table(pa.table(self.columns(first, _BLOCK_ROWS)))
            fresh.replace(path)
        return path


def _bits(seed: int, i: np.ndarray) -> np.ndarray:
    return mix((seed << 48) ^ i)
