from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import joinsim
from joinsim import _listing


def test_the_stored_list_is_the_one_that_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = json.loads(json.dumps(_listing.listing()))
    monkeypatch.setattr("joinsim._catalog.describe_all", lambda: pytest.fail("made again"))
    assert _listing.listing() == made
    assert next(one["name"] for one in made["topologies"]) == "spo_join"
    assert len(list(tmp_path.glob("joinsim/list-*.json"))) == 1


def test_a_changed_file_makes_the_list_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "one.toml").write_text("")
    monkeypatch.setattr(_listing, "_ROOT", tmp_path)
    before = _listing._digest()
    assert _listing._digest() == before
    os.utime(folder / "one.toml", ns=(1, 1))
    changed = _listing._digest()
    (folder / "two.toml").write_text("")
    assert len({before, changed, _listing._digest()}) == 3


def test_a_list_can_be_made_without_a_folder_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("joinsim._catalog.describe_all", lambda: {"scenarios": []})
    assert _listing.listing() == {"scenarios": []}


def test_what_a_scenario_lacks_has_no_words() -> None:
    """Many a scenario is of no paper, and has no figure or no number of tuples."""
    with pytest.raises(joinsim.ConfigError, match="nothing has 'none' in it"):
        joinsim.search("none")
    with pytest.raises(joinsim.ConfigError, match="'nonee' in it; did you mean one, ones"):
        joinsim.search("nonee")


def test_words_that_only_do_not_occur_together_are_not_corrected() -> None:
    with pytest.raises(joinsim.ConfigError) as raised:
        joinsim.search("oij", "inequality")
    assert str(raised.value) == "nothing has 'oij' and 'inequality' in it, though some have one"
    with pytest.raises(joinsim.ConfigError) as raised:
        joinsim.search("oij", "inequalty")
    assert str(raised.value).startswith("nothing has 'oij' and 'inequalty' in it; did you mean in")
    assert "ppoij" not in str(raised.value)
