"""Codes: int64 numbers in the order of the values they stand for; one kernel serves every dtype.

An integer is its own code. A float's code is its place in the order of all floats: both zeros are
0, and NaN lies beyond the infinities, where no range reaches it.
"""

from __future__ import annotations

import numpy as np

from joins.machine.compiling import inlined

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""The ends of int64: no code is beyond them, and no position."""
_WITHOUT_SIGN, _SIGN_BIT = np.int64(GREATEST), np.int64(63)


def encode(values: np.ndarray) -> np.ndarray:
    """Return the code of each value (int64 or float64)."""
    if values.dtype == np.int64:
        return values
    # Negative floats have the sign bit set and grow in bits as they fall in value: such a code is
    # the bits without the sign, negated.
    bits = values.view(np.int64)
    signs = bits >> _SIGN_BIT
    codes: np.ndarray = signs & _WITHOUT_SIGN
    codes ^= bits
    codes -= signs
    return codes


def decode(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Return the values of *codes*; zero is positive."""
    if dtype == "int64":
        return codes
    magnitude = np.abs(codes).view(np.float64)
    values: np.ndarray = np.where(codes >= 0, magnitude, -magnitude)
    return values


@inlined
def code_of(value: float) -> int:
    """Return the code of one float, in a kernel."""
    bits = np.float64(value).view(np.int64)
    return int(bits if bits >= 0 else -(bits & _WITHOUT_SIGN))


@inlined
def float_of(code: int) -> float:
    """Return the float with this code, in a kernel."""
    if code >= 0:
        return np.int64(code).view(np.float64)
    return -np.int64(-code).view(np.float64)


ENDS = {
    "i": (LEAST, GREATEST),
    "f": tuple(encode(np.array([-np.inf, np.inf])).tolist()),
}
"""Per kind of dtype the codes of its least and its greatest value."""
