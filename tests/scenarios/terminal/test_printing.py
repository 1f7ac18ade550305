"""What commands print: the texts as they are."""

from __future__ import annotations

import pytest

from joinsim._calls import of_query
from scenarios.formatting import TextTable
from scenarios.terminal.printing import console, keep_together, print_table, print_wrapped
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_plan


def test_brackets_in_a_text_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    console(quiet=False).print("data[1].parquet, [memory] of the profile", style="dim")
    assert capsys.readouterr().out == "data[1].parquet, [memory] of the profile\n"


def test_colons_in_a_text_are_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    console(quiet=False).print("replay: joinsim run --out 12:100:x:key:", style="dim")
    Terminal(quiet=False).note("a:key:b")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("replay: joinsim run --out 12:100:x:key:\n", "a:key:b\n")


def test_brackets_in_a_label_of_a_study_are_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal, where a line is redrawn
    with Terminal(quiet=False).points(2) as line:
        line.on_point(0, "with [/all], [red]")
    assert "run 1 of 2: with [/all], [red]" in capsys.readouterr().err


def test_the_last_of_many_runs_leaves_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal(quiet=False).points(2) as line:
        line.on_point(1, "a is done")
        line.on_point(2, "b is done")
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("run 2 of 2: a is done, ")
    assert last == "run 2 of 2: b is done"


def test_links_that_differ_are_shown_as_they_are_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '2')"
    network = {"links": [{"a": "source", "b": "router", "latency": "3 ms"}]}
    plan = of_query(query, {"T": {"x": [1, 2, 3]}}, "split_join", network=network).prepare()
    show_plan(console(quiet=False), plan)
    said = capsys.readouterr().out
    assert "source - router=latency 3 ms" in said
    assert "LinkConfig" not in said


def test_a_quiet_console_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console(quiet=True).print("anything")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("width", [30, 34, 160])
def test_no_cell_of_a_table_is_cut(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headings of numbers stay on one line; where they do not fit, columns come one by one."""
    monkeypatch.setenv("COLUMNS", str(width))
    headings = ("topology", "2 streams, time", "self, count")
    rows = [("low_latency", "1 234", "5 678")]
    print_table(console(quiet=False), TextTable(columns=headings, rows=rows, text_columns=1))
    shown = capsys.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    for text in (*headings, *rows[0]):
        assert text in shown
    assert max(map(len, shown.splitlines())) <= width


def test_columns_that_do_not_fit_come_in_a_table_of_their_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    headings = ("system", "exact", "tuples/s", "p95 ms")
    rows = [("ibwj", "exact", "1,234,567", "1.5"), ("panjoin", "", "98", "20")]
    table = TextTable(columns=headings, rows=rows, text_columns=2)
    print_table(console(quiet=False), table)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line for line in lines if "─" not in line[0]] == [
        ["system", "exact"], ["ibwj", "exact"], ["panjoin"],
        ["system", "tuples/s"], ["ibwj", "1,234,567"], ["panjoin", "98"],
        ["system", "p95", "ms"], ["ibwj", "1.5"], ["panjoin", "20"],
    ]  # fmt: skip


def test_a_row_of_columns_wider_than_the_terminal_is_a_block(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "22")
    table = TextTable(
        columns=("system", "tuples/s"), rows=[("nested_loop", "1,234")], text_columns=1
    )
    print_table(console(quiet=False), table)
    assert capsys.readouterr().out.split() == ["system", "nested_loop", "tuples/s", "1,234"]


def test_a_line_wraps_between_its_items_and_is_indented(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    out = console(quiet=False)
    print_wrapped(out, f"  feeding: {keep_together(['rows=10', 'linger=5 ms', 'path=/a/b-c'])}")
    print_wrapped(out, "a claim that is long enough to wrap", head="holds   ")
    assert capsys.readouterr().out.splitlines() == [
        "  feeding: rows=10", "    linger=5 ms", "    path=/a/b-c",
        "holds   a claim that is", "        long enough to", "        wrap",
    ]  # fmt: skip


def test_what_follows_a_long_head_is_not_squeezed_behind_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    names = "spo_join, split_join, panjoin"
    print_wrapped(console(quiet=False), "  cannot: join over an interval", head=names)
    assert capsys.readouterr().out.splitlines() == [
        "spo_join, split_join,", "  panjoin  cannot: join", "  over an interval",
    ]  # fmt: skip
