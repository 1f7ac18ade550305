"""What commands print: the texts as they are."""

from __future__ import annotations

import pytest

from scenarios.terminal.printing import console


def test_brackets_in_a_text_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    console(quiet=False).print("data[1].parquet, [memory] of the profile", style="dim")
    assert capsys.readouterr().out == "data[1].parquet, [memory] of the profile\n"


def test_a_quiet_console_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console(quiet=True).print("anything")
    assert capsys.readouterr().out == ""
