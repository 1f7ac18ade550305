"""From a CSV file with dirt in it to a checked answer: Spark prepares, joinsim joins.

Spark types, validates, orders and numbers the rows; what is not valid lands in a folder of its own,
each row with the reason.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import joinsim as js

ROWS = """reading,taken_at,watts
1,2026-01-01 00:00:02,310.5
2,2026-01-01 00:00:01,290.0
3,2026-01-01 00:00:03,not measured
4,2026-01-01 00:00:04,120.25
5,2026-01-01 00:00:06,305.0
"""
QUERY = """
SELECT * FROM meter WHERE ABS(meter.watts1 - meter.watts2) <= 10
WINDOW AS (SLIDE INTERVAL '1 s' ON '1 min')
"""


def main() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "meter.csv"
        file.write_text(ROWS)
        meter = js.prepare(file, time="taken_at", fields=["watts"], out=Path(folder) / "prepared")
        print(f"{meter.rows} rows, {meter.rejected} rejected: {dict(meter.rejected_reasons)}")
        run = js.run(QUERY, {"meter": meter}, topology="nested_loop")
        print(run.pairs.to_pylist())
        print(f"exact: {run.verdict.exact}")


if __name__ == "__main__":
    main()
