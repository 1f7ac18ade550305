"""Raw files as one Spark frame that remembers where every row came from.

Every row carries its file's number and its 1-based data row in that file (blank lines are no
rows). CSV columns stay text here: typing them is a decision of its own. A quoted line break inside
a CSV field is not understood: records are lines, so that one file can be read in parallel.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from spark_bridge.pipeline.raw_files import RawFile

FILE, ROW, TEXT = "__joinsim_file", "__joinsim_row", "__joinsim_text"
"""Hidden columns: file number, 1-based data row, and the raw line where it is malformed."""

NANOS = "__joinsim_ns_"
"""Prefix of the hidden columns that keep nanoseconds, which Spark's timestamps cannot hold."""

BLOCK = "__joinsim_block"


def quoted(name: str) -> Column:
    """Return the column of exactly that *name*, dots and spaces included."""
    return sf.col(sql_name(name))


def sql_name(name: str) -> str:
    """Return *name* as Spark SQL spells a column of exactly that name."""
    return "`" + name.replace("`", "``") + "`"


def read(spark: SparkSession, files: list[RawFile], delimiter: str, folder: Path) -> DataFrame:
    """Return the rows of *files* in a frame with the hidden columns FILE, ROW and TEXT.

    *folder* (existing, empty, absolute) receives links to the files: Spark then sees names in which
    nothing is a pattern, hidden or encoded, and whose digits are the file's number. In CSV, ROW
    still counts within a block of the file; `number_rows` completes it.
    """
    groups: dict[tuple[tuple[str, pa.DataType], ...], list[str]] = defaultdict(list)
    for number, file in enumerate(files):
        link = folder / f"{number:06d}{file.suffix}"
        link.symlink_to(file.path)
        groups[tuple(file.columns.items())].append(str(link))
    order = [quoted(name) for name in files[0].columns]
    frames = []
    for columns, paths in groups.items():
        types = dict(columns)
        if files[0].format == "csv":
            frames.append(_csv(spark, paths, list(types), delimiter, order))
        else:
            frames.append(_parquet(spark, paths, types, order))
    return reduce(DataFrame.unionByName, frames)


def _file_number() -> Column:
    return sf.substring(sf.col("_metadata.file_name"), 1, 6).cast("int").alias(FILE)


def _csv(
    spark: SparkSession, paths: list[str], names: list[str], delimiter: str, order: list[Column]
) -> DataFrame:
    fields = [StructField(name, StringType()) for name in [*names, TEXT]]
    frame = (
        spark.read.schema(StructType(fields))
        .option("header", True)
        .option("sep", delimiter)
        .option("escape", '"')  # quotes are doubled, as the CSV standard has it
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", TEXT)
        .csv(paths)
    )
    place = sf.monotonically_increasing_id().bitwiseAND(sf.lit((1 << 33) - 1))
    return frame.select(
        *order,
        _file_number(),
        place.alias(ROW),
        sf.col(TEXT),
        sf.col("_metadata.file_block_start").alias(BLOCK),
    )


def _parquet(
    spark: SparkSession, paths: list[str], types: dict[str, pa.DataType], order: list[Column]
) -> DataFrame:
    # Spark has no nanoseconds: such columns arrive as integers.
    nanos = {
        name: kind
        for name, kind in types.items()
        if pa.types.is_timestamp(kind) and kind.unit == "ns"
    }
    frame = spark.read.parquet(*paths).select("*", "_metadata")
    for name, kind in nanos.items():
        whole = sql_name(name)
        micros = f"timestamp_micros({whole} div 1000 - if({whole} % 1000 < 0, 1, 0))"
        frame = frame.withColumn(NANOS + name, quoted(name)).withColumn(
            name, sf.expr(micros if kind.tz else f"cast({micros} as timestamp_ntz)")
        )
    return frame.select(
        *order,
        *(quoted(NANOS + name) for name in nanos),
        _file_number(),
        (sf.col("_metadata.row_index") + 1).alias(ROW),
        sf.lit(None).cast("string").alias(TEXT),
    )


def block_counts(frame: DataFrame, measures: list[Column]) -> list[dict[str, Any]]:
    """Return per block of every CSV file its place, row count and *measures*, files in order."""
    rows = frame.groupBy(FILE, BLOCK).agg(
        sf.count(sf.lit(1)).alias("rows"), sf.min(ROW).alias("first"), *measures
    )
    return [row.asDict() for row in rows.orderBy(FILE, BLOCK).collect()]


def number_rows(frame: DataFrame, blocks: list[dict[str, Any]]) -> DataFrame:
    """Return the CSV *frame* with ROW as the 1-based data row in its file.

    A block's rows are counted where they were counted in `block_counts`: both readings cut the
    files alike, because Spark cuts by size alone.
    """
    before: dict[object, int] = defaultdict(int)
    shifts: list[Column] = []
    for block in blocks:
        place, rows, first = block[FILE], int(block["rows"]), int(block["first"])
        shifts += [sf.lit(f"{place}:{block[BLOCK]}"), sf.lit(before[place] - first + 1)]
        before[place] += rows
    shift = sf.create_map(*shifts)[sf.concat_ws(":", sf.col(FILE), sf.col(BLOCK))]
    return frame.withColumn(ROW, sf.col(ROW) + shift).drop(BLOCK)
