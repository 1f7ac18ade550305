"""Distributions that values of synthetic streams are drawn from, by 64 random bits each.

Fractions are rounded to millionths: the last bits of a logarithm or a cosine differ between
processors.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from joins.hashing import mix

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
    return np.round(correlation * other + rest * _standard_normal(bits), _MILLIONTHS)


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


def parse(text: str) -> tuple[str, list[str]]:
    """Return a distribution's name and arguments; raise :exc:`ValueError` saying what there is."""
    call = _CALL.fullmatch(text)
    arguments = [part.strip() for part in call[2].split(",")] if call else []
    if not call or len(arguments) != _ARGUMENTS.get(call[1]):
        told = ", ".join(f"{name} ({count} arguments)" for name, count in _ARGUMENTS.items())
        raise ValueError(f"{text!r} is not a distribution; there are {told}")
    return call[1], arguments


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
    if n < 1 or exponent < 0:
        raise ValueError(f"zipf({exponent:g}, {n:g}): exponent 0 or more, n 1 or more")
    weights = np.cumsum(np.arange(1, int(n) + 1, dtype=np.float64) ** -exponent)
    ranks = np.searchsorted(weights, _fraction(bits) * weights[-1], side="right")
    return np.minimum(ranks, int(n) - 1)


def _real(bits: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.round(low + (high - low) * _fraction(bits), _MILLIONTHS)


def _normal(bits: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    if deviation <= 0:
        raise ValueError(f"normal({mean:g}, {deviation:g}): the deviation must be above 0")
    return np.round(mean + deviation * _standard_normal(bits), _MILLIONTHS)


def _gamma(bits: np.ndarray, shape: float, scale: float) -> np.ndarray:
    if shape != int(shape) or shape < 1 or scale <= 0:
        raise ValueError(f"gamma({shape:g}, {scale:g}): a whole shape from 1 on, a scale above 0")
    total = np.zeros(len(bits))
    for _ in range(int(shape)):
        total -= np.log1p(-_fraction(bits))
        bits = mix(bits)
    return np.round(scale * total, _MILLIONTHS)


def _standard_normal(bits: np.ndarray) -> np.ndarray:
    """Return normal numbers of mean 0 and deviation 1 (Box and Muller, 1958)."""
    radius = np.sqrt(-2 * np.log1p(-_fraction(bits)))
    return radius * np.cos(2 * np.pi * _fraction(mix(bits)))


DISTRIBUTIONS: dict[str, Callable[..., np.ndarray]] = {
    "uniform": _uniform,
    "skewed": _skewed,
    "zipf": _zipf,
    "self_similar": _self_similar,
    "real": _real,
    "normal": _normal,
    "gamma": _gamma,
}
_ARGUMENTS = {
    "uniform": 2,
    "skewed": 3,
    "zipf": 2,
    "self_similar": 2,
    "real": 2,
    "normal": 2,
    "gamma": 2,
    "opposed": 2,
    "drifting": 5,
}
