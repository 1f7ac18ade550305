"""A prepared stream as it lies on disk, read without Spark.

Layout of ``<out>/<name>/``: ``segments/part-00000.parquet`` and so on in stream order, nothing else
in that folder; ``codes-<field>.parquet`` (``code``, ``value``) for a join field of text, of which
the segments hold the codes; ``rejected/part-*.parquet`` when rows were rejected; ``stream.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow.parquet as pq

from joins.batch import Schema
from spark_bridge.errors import DataError

FORMAT = 1
"""Version of the layout; a stream of another version is prepared anew."""

SUMMARY, SEGMENTS, REJECTED = "stream.json", "segments", "rejected"


@dataclass(frozen=True, kw_only=True)
class PreparedStream:
    """One prepared stream.

    Attributes
    ----------
    name
        The stream's name.
    path
        Folder of its Parquet segments, which sort by name into stream order.
    rows
        Number of tuples; their ``id`` runs from 0 to *rows* - 1.
    rejected
        Number of rejected rows, which lie in the folder ``rejected`` beside the segments.
    rejected_reasons
        What was wrong to how often; a row can have several things wrong.
    schema
        The join fields and their dtypes.
    first_ts, last_ts
        Event time of the first and the last tuple, ns.
    notes
        What a person should know of how it was prepared.
    codes
        Join fields that hold codes of texts: to the digest of their dictionary. Codes can be
        compared where it is the same.
    fingerprint
        Digest of the sources' bytes and the options: equal means that nothing has to be redone.
    """

    name: str
    path: Path
    rows: int
    rejected: int
    rejected_reasons: Mapping[str, int]
    schema: Schema
    first_ts: int
    last_ts: int
    notes: tuple[str, ...]
    fingerprint: str
    codes: Mapping[str, str] = field(default_factory=dict)


def codes_file(name: str) -> str:
    """Return the name of the file with the texts of join field *name*."""
    return f"codes-{quote(name, safe='')}.parquet"


def load_stream(folder: str | Path) -> PreparedStream:
    """Read what ``stream.json`` in *folder* says of a prepared stream.

    Raises
    ------
    DataError
        There is no prepared stream in *folder*, or it is of another version.
    """
    folder = Path(folder)
    about = folder / SUMMARY
    try:
        told: dict[str, Any] = json.loads(about.read_text())
        if told["format"] != FORMAT:
            raise DataError(
                f"{folder} was prepared by another version (layout {told['format']}, this one "
                f"reads {FORMAT}); prepare it again"
            )
        columns = told["schema"]
        fields = {name: columns[name]["dtype"] for name in told["join_fields"]}
        return PreparedStream(
            name=told["name"],
            path=folder / SEGMENTS,
            rows=told["rows"],
            rejected=told["rejected"],
            rejected_reasons=told["rejected_reasons"],
            schema=Schema(stream=told["name"], fields=fields),
            first_ts=told["first_ts"],
            last_ts=told["last_ts"],
            notes=tuple(told["notes"]),
            fingerprint=told["fingerprint"],
            codes=told.get("codes", {}),
        )
    except OSError as error:
        raise DataError(
            f"{folder} is not a prepared stream: {SUMMARY} cannot be read ({error.strerror})"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{about} is damaged ({error}); prepare the stream again") from error


def check_order(stream: PreparedStream) -> None:
    """Raise :exc:`DataError` naming the first tuple whose event time is before its predecessor's.

    The pipeline puts rows in order. A folder that was written or changed otherwise may not be, and
    a site that took arrival for event time would be wrong without a word.
    """
    row, latest = 0, np.iinfo(np.int64).min
    for file in sorted(stream.path.glob("*.parquet")):
        with pq.ParquetFile(file) as part:
            for block in part.iter_batches(columns=["ts"]):
                ts = block["ts"].to_numpy()
                before = np.append(latest, ts)
                back = np.flatnonzero(before[:-1] > ts)
                if len(back):
                    at = int(back[0])
                    raise DataError(
                        f"{file}: event times run backwards at tuple {row + at}, from {before[at]} "
                        f"to {ts[at]} ns; give the raw file, whose rows are then put in order"
                    )
                row += len(ts)
                latest = before[-1]
