"""A scenario's expressions are data: nothing in them reaches Spark but what is allowed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.errors import DataError
from scenarios.config import SCALES
from scenarios.scenario_files import catalog, read
from spark_bridge.pipeline.expressions import CHARACTERS_MAX, FUNCTIONS, check_expression
from tests.spark_bridge.helpers import prepare_one, write_parquet

HOLE = "reflect('java.lang.System', 'setProperty', 'joinsim.hole', 'open') is null"


@pytest.mark.parametrize("option", ["where", "time"])
def test_an_expression_cannot_reach_java(spark: Any, tmp_path: Path, option: str) -> None:
    file = write_parquet(tmp_path / "a.parquet", {"ts": [1, 2], "v": [1, 2]})
    said: dict[str, Any] = {"paths": [file], "fields": ["v"], option: HOLE}
    with pytest.raises(DataError, match="the function reflect is not allowed; allowed are") as one:
        prepare_one(tmp_path / "out", spark, **said)
    assert "\n" not in str(one.value)
    assert spark._jvm.java.lang.System.getProperty("joinsim.hole") is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("java_method('java.lang.Runtime', 'getRuntime')", "the function java_method"),
        ("Reflect('a', 'b')", "the function Reflect"),
        ("`reflect`('a', 'b')", "the function reflect"),
        ("try_reflect('a', 'b')", "the function try_reflect"),
        ("1 + abs(coalesce(java_method('a', 'b'), 1))", "the function java_method"),
        ("case when reflect('a', 'b') = 1 then 1 end", "the function reflect"),
        ("cast(reflect('a', 'b') as int)", "the function reflect"),
        ("interval reflect('a', 'b') day", "the function reflect"),
        ("interval 1 reflect", "REFLECT"),
        ("v in (select reflect('a', 'b'))", "SUBQUERY"),
        ("exists(select 1)", "EXISTS"),
        ("transform(v, x -> reflect('a', x))", "TRANSFORM"),
        ("a.b.reflect('a')", "DOT"),
        ("sum(v) over (order by ts)", "WINDOW"),
        ("rand() > 0.5", "the function rand"),
        ("current_date()", ".*(current_date|CURRENT_DATE)"),
        ("cast(v as struct<a: int>)", "the type STRUCT"),
        ("1; drop table x", "BLOCK"),
        ("1 as reflect", "ALIAS"),
        ("a = 'it''s'", "text right after text"),
        ("@v + :p", "PARAMETER|PLACEHOLDER"),
    ],
)
def test_what_is_not_allowed_is_named(text: str, named: str) -> None:
    with pytest.raises(DataError, match=f"^it .*: ({named}).* is not allowed; allowed are"):
        check_expression(text, "it")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not valid"),
        ("a +", "is not valid at line 1, character 3"),
        ("a\n= (b", "is not valid at line 2, character 4"),
        ("a = 'b", "is not valid"),
        ("(" * 1900 + "a" + ")" * 1900, "is nested too deeply"),
        ("a" + " + 1" * CHARACTERS_MAX, "characters; 4,000 are allowed"),
    ],
)
def test_what_is_no_expression_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as error:
        check_expression(text, "it")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("time - interval '40023' second", "`time` - INTERVAL '40023' SECOND"),
        ("to_timestamp(a || b, 'd/M/yyyy H:m:s.SSS')", None),
        ("a = 'it\\'s' /* ' */ -- '", "`a` = 'it\\'s'"),
        ('`a``b` <=> "q\'\\\\"', "`a``b` IS NOT DISTINCT FROM 'q\\'\\\\'"),
        ("try_cast(a as int) + int(b) div 2", None),
        ("timestamp'2008-01-01' < t", "CAST('2008-01-01' AS TIMESTAMP) < `t`"),
    ],
)
def test_spark_receives_what_is_printed_from_the_parts(text: str, printed: str | None) -> None:
    sql = check_expression(text, "it").sql
    assert printed is None or sql == printed
    assert _words(sql) == _words(printed or text)


def _words(sql: str) -> list[str]:
    """Return words and signs, regardless of blanks, backticks and case, but for strings."""
    cut = re.findall(r"'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|[^\s`]", sql)
    return [word if word[0] == "'" else word.lower() for word in cut]


def test_columns_are_those_that_the_expression_reads() -> None:
    text = "to_timestamp(Date || ' ' || `my time`, 'yyyy') - interval 1 day"
    assert check_expression(text, "it").columns == {"Date", "my time"}


TEXTS = [
    r"'it\'s'",
    r"'a\\b'",
    r"'\n\t'",
    r"'\u0041\101'",
    r"r'\d'",
    r"'\d'",
    r'"q\"q\'"',
    r"'100\%'",
    "'é'",
]


def test_text_means_what_it_does_in_spark(spark: Any) -> None:
    row = spark.range(1)
    for text in TEXTS:
        printed = check_expression(text, "it").sql
        assert row.selectExpr(text).first()[0] == row.selectExpr(printed).first()[0], text


def _declared() -> list[str]:
    texts = set()
    for name in catalog():
        for scale in SCALES:
            texts |= set(_expressions(read(name, scale=scale)))
    return sorted(texts)


def _expressions(section: Any) -> list[str]:
    """Return every ``time`` and ``where`` of a scenario, those of a study's points included."""
    if isinstance(section, list):
        return [text for part in section for text in _expressions(part)]
    if not isinstance(section, dict):
        return []
    own = [section[key] for key in ("time", "where") if isinstance(section.get(key), str)]
    return own + [text for part in section.values() for text in _expressions(part)]


def test_the_expressions_of_all_scenarios_are_allowed(spark: Any) -> None:
    """They mean the same to Spark as they were written."""
    times = ("time", "date_time", "pickup_datetime", "time_hour", "ended_at", "started_at")
    stamps = [f"timestamp_seconds(id * 3456789 + 1167609600) as {name}" for name in times]
    frame = spark.range(2000).selectExpr("*", *stamps, "id as value")
    frame = frame.selectExpr("*", "cast(id as string) as video_id")
    declared = _declared()
    assert len(declared) > 30
    for text in declared:
        sql, columns = check_expression(text, "it")
        if sql == f"`{text}`":
            continue  # a column
        ts = "id * 1000" if "millis" in text else "timestamp_seconds(id * 3456789 + 1500000000)"
        rows = frame.selectExpr("*", f"{ts} as ts")
        assert columns <= set(rows.columns), text
        assert rows.filter(f"not (({sql}) <=> ({text}))").isEmpty(), text


LITERALS = st.one_of(
    st.integers(0, 10**20).map(str),
    st.floats(0, 1e30, allow_nan=False).map(repr),
    st.text(max_size=8).map(
        lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    ),
    st.sampled_from(
        ["NULL", "TRUE", "date'2007-01-01'", "interval 3 hours", "timestamp '2008-01-01'"]
    ),
)
_SIGNS = "+ - * / % div || = == <=> != <> < >= & | ^ and or like rlike"
SIGNS = st.sampled_from([*_SIGNS.split(), "not like"])
COLUMNS = st.sampled_from(["a", "ts", "`date time`", "`q``x`", "R.v", "`reflect`"])


def _combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    function = st.sampled_from([name for name in FUNCTIONS if name != "if"])
    return st.one_of(
        st.tuples(parts, SIGNS, parts).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        st.tuples(function, st.lists(parts, max_size=3)).map(
            lambda p: f"{p[0]}({', '.join(p[1])})"
        ),
        st.tuples(parts, parts, parts).map("({0[0]}) between ({0[1]}) and ({0[2]})".format),
        st.tuples(parts, parts, parts).map("case when {0[0]} then {0[1]} else {0[2]} end".format),
        st.tuples(parts, parts).map(lambda p: f"({p[0]}) not in ({p[1]}, 1)"),
        st.tuples(parts, st.sampled_from(["int", "decimal(10,2)", "string", "timestamp"])).map(
            lambda p: f"cast({p[0]} as {p[1]})"
        ),
        parts.map(lambda p: f"({p}) is not null"),
        parts.map(lambda p: f"not ({p})"),
        parts.map(lambda p: f"-({p})"),
        parts.map(lambda p: f"{p} /* {p} */"),
    )


EXPRESSIONS = st.recursive(
    st.one_of(LITERALS, COLUMNS), lambda parts: _combined(parts), max_leaves=8
)
CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
KEYWORDS = {"in", "cast", "try_cast", "decimal", "and", "or", "not", "div", "like", "rlike", "then"}
KEYWORDS |= {"when", "else", "between", "case", "is", "null", "interval", "end", "as", "from"}


def _calls(sql: str) -> set[str]:
    """Return what stands before a parenthesis in *sql*, outside strings and backticks."""
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", " 0 ", sql, flags=re.DOTALL)
    assert "'" not in bare
    assert "`" not in bare
    assert "/*" not in bare
    return {name.lower() for name in CALL.findall(bare)}


@given(st.text("'\"\\`ab()/*-nu0 \n", max_size=20))
def test_no_text_ends_its_quotes(text: str) -> None:
    for quote in "'\"`":
        try:
            sql = check_expression(f"v = {quote}{text}{quote} or abs(v) = 1", "it").sql
        except DataError:
            continue
        assert _calls(sql) <= {"abs"}


@given(EXPRESSIONS)
def test_an_allowed_expression_is_printed_once_and_for_all(text: str) -> None:
    if len(text) <= CHARACTERS_MAX:
        sql = check_expression(text, "it").sql
        assert check_expression(sql, "it").sql == sql
        assert _calls(sql) <= {*FUNCTIONS, *KEYWORDS}


@given(
    EXPRESSIONS, st.sampled_from(["reflect", "JAVA_METHOD", "try_reflect", "`reflect`"]), st.data()
)
def test_no_place_in_an_expression_reaches_java(text: str, name: str, data: Any) -> None:
    places = [match.start() for match in re.finditer(r"\ba\b|\bts\b", text)]
    call = f"{name}('a', 'b')"
    if places:
        at = data.draw(st.sampled_from(places))
        text = text[:at] + call + text[at:].removeprefix("a").removeprefix("ts")
    else:
        text = f"({text}) = {call}"
    try:
        sql = check_expression(text, "it").sql
    except DataError:
        return
    assert _calls(sql) <= {*FUNCTIONS, *KEYWORDS}  # the place was in a string or a comment


_TOKENS = """( ) , ' " ` \\ . ; :: -> => [ ] { } @ : ? * - -- /* */ + = reflect java_method select
from cast as struct interval day case when then end in not is null abs a 1"""
TOKENS = [*_TOKENS.split(), "\n"]


@given(st.lists(st.sampled_from(TOKENS), max_size=14).map(" ".join))
def test_any_text_is_refused_in_one_line_or_calls_nothing_else(text: str) -> None:
    try:
        sql = check_expression(text, "it").sql
    except DataError as error:
        sql = ""
        refusal = str(error)
        assert "\n" not in refusal
    assert _calls(sql) <= {*FUNCTIONS, *KEYWORDS}
