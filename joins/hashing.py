"""One fixed 64-bit mix, the same in every process and on every machine.

Python's own ``hash`` differs between processes, so nothing that routes, partitions or fingerprints
may use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.machine.compiling import inlined, kernel, part_of, read_only

INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
"""What `splitmix64` adds and multiplies by."""
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@part_of
def splitmix64(value: int) -> np.uint64:
    """Mix one 64-bit *value* (wrapping) into a uint64 (Steele, Lea and Flood, 2014)."""
    z = np.uint64(value) + INCREMENT
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@inlined
def find_key(numbers: np.ndarray, mask: int, keys: np.ndarray, key: int) -> tuple[int, int]:
    """Find *key* by open addressing: its place, or the empty one where it belongs.

    A place of *numbers* has the number of one of *keys* plus one, or 0; *mask* is the last one.
    The second result is how many places with other keys come before.
    """
    passed = 0
    place = np.int64(splitmix64(key) & np.uint64(mask))
    while numbers[place] != 0 and keys[numbers[place] - 1] != key:
        place = (place + 1) & mask
        passed += 1
    return int(place), passed


def mix(values: np.ndarray) -> np.ndarray:
    """Mix an int64 or uint64 array element by element into uint64."""
    with np.errstate(over="ignore"):
        z = values.astype(np.uint64) + INCREMENT
        z = (z ^ (z >> _S30)) * _FIRST
        z = (z ^ (z >> _S27)) * _SECOND
        return z ^ (z >> _S31)


def mix_rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Mix int64 columns row by row into uint64; for a single column the same as `mix`."""
    mixed = mix(columns[0])
    for column in columns[1:]:
        mixed = mix(mixed ^ column.astype(np.uint64))
    return mixed


def partition(ids: np.ndarray, parts: int) -> np.ndarray:
    """Return for every id the part (0 to *parts* - 1, int64) that a fixed hash sends it to."""
    if parts == 1:
        return np.zeros(len(ids), np.int64)
    places = np.empty(len(ids), np.int64)
    _partition(read_only(ids), np.uint64(parts), places)
    return places


@kernel
def _partition(ids: np.ndarray, parts: np.uint64, places: np.ndarray) -> None:
    for i in range(len(ids)):
        places[i] = splitmix64(ids[i]) % parts
