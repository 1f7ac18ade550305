"""Expressions in a stream's declaration: a grammar of ours, never Spark's whole SQL.

Spark's SQL reaches its JVM (``reflect``, ``java_method``), so that a scenario's text could load
code. An expression is therefore parsed here, each node and function is compared with those that
are allowed, and Spark receives what is printed from the checked tree: names in backticks, strings
escaped, no comments. Functions are Spark's own, spelled as in its manual; those whose value differs
from run to run (``rand``, ``current_date``) are not among them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from joins.errors import DataError

if TYPE_CHECKING:
    from sqlglot import Expr

CHARACTERS_MAX = 4_000  # an expression is written by a person, and parsed by recursion

_FUNCTIONS = """
abs acos add_months ascii asin atan atan2 bigint bit_count boolean bround btrim cbrt ceil
ceiling char_length character_length coalesce concat concat_ws contains cos crc32 date date_add
date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff day
dayofmonth dayofweek dayofyear decimal degrees double endswith exp float floor from_unixtime
from_utc_timestamp greatest hash hour hypot if ifnull initcap instr int isnan isnotnull isnull
last_day lcase least left length ln locate log log10 log1p log2 lower lpad ltrim make_date
make_dt_interval make_interval make_timestamp minute mod month months_between nanvl negative
next_day nullif nvl nvl2 pmod positive pow power quarter radians regexp_extract regexp_like
regexp_replace replace reverse right rint rlike round rpad rtrim second shiftleft shiftright
sign signum sin smallint split_part sqrt startswith string substr substring tan timestamp
timestamp_micros timestamp_millis timestamp_seconds tinyint to_date to_timestamp
to_unix_timestamp to_utc_timestamp translate trim trunc try_add try_divide try_multiply
try_subtract try_to_timestamp ucase unix_date unix_micros unix_millis unix_seconds upper weekday
weekofyear xxhash64 year
"""
FUNCTIONS = tuple(_FUNCTIONS.split())
"""What an expression may call: mathematics, text, dates, nulls, hashes."""

_NODES = """
Add And Anonymous Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Boolean Case Cast Column
DataType DataTypeParam Div DPipe EQ Escape GT GTE Identifier If ILike In IntDiv Interval
IntervalSpan Is Like Literal LT LTE Mod Mul Neg NEQ Not Null NullSafeEQ NullSafeNEQ Or Paren
RawString RegexpLike Sub TryCast Var
"""
_TYPES = """
BIGINT BOOLEAN DATE DECIMAL DOUBLE FLOAT INT SMALLINT TEXT TIMESTAMP TIMESTAMPLTZ TIMESTAMPNTZ
TIMESTAMPTZ TINYINT
"""
_UNITS = "YEAR MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND"
_ALLOWED = (
    "allowed are columns, numbers, 'text', arithmetic, comparisons, AND, OR, NOT, CASE, CAST, "
    "IS NULL, LIKE, RLIKE, IN, BETWEEN, INTERVAL, and the functions " + ", ".join(FUNCTIONS)
)


class Expression(NamedTuple):
    """A checked expression: its SQL, and the names of the columns that it reads."""

    sql: str
    columns: frozenset[str]


def check_expression(text: str, what: str) -> Expression:
    """Return the expression *text*, printed anew from its parts.

    Raise :exc:`DataError`, which begins with *what*, if it is no expression, or has a part or calls
    a function that is not allowed.
    """
    from sqlglot import parse_one
    from sqlglot.errors import SqlglotError

    shown = text if len(text) <= 200 else text[:200] + "..."
    what = f"{what} {' '.join(shown.split())!r}"
    if len(text) > CHARACTERS_MAX:
        raise DataError(f"{what} has {len(text):,} characters; {CHARACTERS_MAX:,} are allowed")
    try:
        tree = parse_one(text, dialect=_dialect())
        for node in tree.walk():
            refused = _refused(node)
            if refused:
                raise DataError(f"{what}: {refused} is not allowed; {_ALLOWED}")
        sql = tree.sql(dialect=_dialect(), comments=False, identify=True)
    except SqlglotError as error:
        places = [
            f" at line {e['line']}, character {e['col']}" for e in getattr(error, "errors", ())
        ]
        raise DataError(f"{what} is not valid{places[0] if places else ''}") from None
    except RecursionError:
        raise DataError(f"{what} is nested too deeply") from None
    columns = (node.name for node in tree.walk() if type(node).__name__ == "Column")
    return Expression(sql, frozenset(columns))


def _refused(node: Expr) -> str | None:
    """Return what is not allowed about a *node*, its parts aside; None if it is allowed."""
    kind = type(node).__name__
    if kind == "Anonymous":
        # A name in backticks is no string here.
        allowed = isinstance(node.this, str) and node.this.lower() in FUNCTIONS
        return None if allowed else f"the function {node.name}"
    if kind == "DataType":
        return None if node.this.name in _TYPES.split() else f"the type {node.sql()}"
    if kind == "Var":
        return None if node.name.upper().removesuffix("S") in _UNITS.split() else f"{node.name}"
    if kind == "Concat":  # Spark 3 and 4 differ in what 'it''s' is
        return "text right after text (for a quote in text, write \\')"
    if kind not in _NODES.split():
        return f"{node.key.upper()} ({node.sql(dialect=_dialect(), comments=False)[:60]})"
    return None


@cache
def _dialect() -> Any:
    """Return Spark's dialect in which every function is a name with arguments, and stays as it is.

    Otherwise the parser would turn some into others, and their formats of time.
    """
    from sqlglot.dialects.spark import Spark
    from sqlglot.parsers.spark import SparkParser

    class Expressions(Spark):
        class Parser(SparkParser):
            FUNCTIONS: ClassVar[dict[str, Any]] = {}
            FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
                name: parse
                for name, parse in SparkParser.FUNCTION_PARSERS.items()
                if name in ("CAST", "TRY_CAST")
            }

    return Expressions
