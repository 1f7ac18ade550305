"""Query texts that tests share, and how two are compared."""

from __future__ import annotations

import re

Q1 = """SELECT R.POW_ID, R.COOL_ID, S.POW_ID, S.COOL_ID
FROM R, S
WHERE R.POWER < S.POWER AND R.COOL > S.COOL
WINDOW AS (SLIDE INTERVAL '10' ON '60')"""
Q2 = """SELECT tripId, time FROM taxi_trips
WHERE ABS(start_LON1 - start_LON2) < 0.03
AND ABS(start_LAT1 - start_LAT2) < 0.03
WINDOW AS (SLIDE INTERVAL 'D' ON 'W')"""
Q3 = """SELECT NYC.id FROM NYC
WHERE NYC.trip_dist1 > NYC.trip_dist2
AND NYC.trip_fare1 < NYC.trip_fare2
WINDOW AS ( SLIDE INTERVAL 'D' ON 'W');"""


def squeezed(text: str) -> str:
    """Return *text* without white space (outside quotes) and closing semicolon."""
    parts = re.split(r"""("[^"]*"|'[^']*')""", text.strip().removesuffix(";"))
    return "".join(p if p[:1] in ('"', "'") else "".join(p.split()) for p in parts)


def window(clause: str) -> str:
    return f"SELECT * FROM T WHERE x1 < x2 WINDOW AS ({clause})"
