"""Output that cannot be written, or that two runs write at once: one message, and no half file."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import scenarios.run
from actors.protocol import ActorError
from scenarios.run_directory import UNFINISHED, run_directory
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command, Said
from tests.end_to_end.stopping import REPOSITORY
from tests.limits import file_size_limit

RUN = ("run", "--query", SELF_JOIN.format(window=WINDOW), "--out", "run", "--json")


def refused(said: Said, *texts: str) -> None:
    """Check that *said* ends in one line with each of *texts*, and in exit code 3."""
    assert (said.code, said.out) == (3, "")
    *progress, line = said.err.splitlines()
    assert line.startswith("joinsim: ")
    assert not any("joinsim: " in before or "Traceback" in before for before in progress)
    for text in texts:
        assert text in line


@pytest.mark.parametrize(("nbytes", "file"), [(2_000, "trace.parquet"), (50_000, "report.html")])
def test_a_file_that_grows_too_large_is_one_message_and_the_run_says_it_has_not_finished(
    nbytes: int, file: str, joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    assert joinsim(*RUN, "--data", prepared).code == 0  # compiles what is not yet
    with file_size_limit(nbytes):
        said = joinsim(*RUN, "--data", prepared)
    refused(said, f"cannot write to run/{file}: File too large", "ulimit -f")
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert UNFINISHED in left
    assert file not in left
    assert not [name for name in left if name.startswith(".")]
    assert joinsim(*RUN, "--data", prepared).code == 0
    assert not (tmp_path / "run" / UNFINISHED).exists()


def test_a_comparison_stops_where_nothing_more_can_be_written(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    arguments = ("compare", RUN[2], "--data", prepared, "--topologies", "spo_join,split_join")
    with file_size_limit(2_000):
        said = joinsim(*arguments, "--out", "run", "--json")
    refused(said, "cannot write to run/points/", "File too large")
    assert (tmp_path / "run" / UNFINISHED).exists()
    assert not list((tmp_path / "run").glob("compare.*"))
    assert not list((tmp_path / "run").rglob(".*"))


def test_a_second_run_into_one_folder_is_refused_and_leaves_the_first_alone(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    with run_directory("first", 0, tmp_path / "run") as directory:
        (directory / "run.json").write_text("{}")
        refused(joinsim(*RUN, "--data", prepared), "another run is writing to run (process ")
        assert (directory / "run.json").read_text() == "{}"


@pytest.mark.parametrize("step", ["simulate", "judge"])
def test_a_prepared_stream_that_is_deleted_during_a_run_is_one_message(
    step: str, joinsim: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(prepared, tmp_path / "s")
    then = getattr(scenarios.run, step)

    def deleted(*arguments: Any, **options: Any) -> Any:
        shutil.rmtree(tmp_path / "s")
        return then(*arguments, **options)

    monkeypatch.setattr(scenarios.run, step, deleted)
    refused(joinsim(*RUN, "--data", "s"), "no Parquet segment in ", "if it was deleted")


def test_a_full_disk_anywhere_is_one_message(
    joinsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/cache/kernel.nbc")

    monkeypatch.setattr("joinsim._listing.listing", full)
    refused(joinsim("list"), "cannot write to /cache/kernel.nbc: No space left", "make room")


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("--help",)])
def test_standard_output_that_is_full_is_one_message(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "joinsim", *arguments],
            cwd=REPOSITORY,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    said = Said(code=done.returncode, out="", err=done.stderr)
    refused(said, "cannot write to standard output or a file: No space left")


def test_a_new_topology_that_finds_no_room_leaves_no_part_of_itself(
    joinsim: Command, tmp_path: Path
) -> None:
    with file_size_limit(1_000):
        said = joinsim("new", "topology", "my_join", "--out", "package")
    refused(said, "cannot write to package/src/my_join.py: File too large")
    assert not (tmp_path / "package").exists()


READER_GONE = 141  # what a shell says of a program that SIGPIPE ended


@pytest.mark.parametrize(
    ("words", "reads", "code"),
    [
        ("list", "out", READER_GONE),
        ("list --json", "out", READER_GONE),
        ("show spo_join", "out", READER_GONE),
        ("--help", "out", READER_GONE),
        ("show nobody", "out", 3),
        ("show nobody", "err", 3),
        ("list", "err", 0),
    ],
)
def test_a_reader_that_goes_away_ends_a_command_without_a_word(
    words: str, reads: str, code: int
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "joinsim", *words.split()],
        cwd=REPOSITORY,
        stdout=writing if reads == "out" else subprocess.PIPE,
        stderr=writing if reads == "err" else subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert done.returncode == code
    assert bool(done.stderr) == (code == 3 and reads == "out")
    assert "Traceback" not in (done.stderr or "")


def test_a_pipe_of_another_process_that_breaks_is_no_reader_that_went_away() -> None:
    breaks = (
        "import joinsim.cli.command_line as line\n"
        "def app(): raise BrokenPipeError(32, 'Broken pipe')\n"
        "line.app = app\n"
        "line.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", breaks], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "BrokenPipeError: [Errno 32] Broken pipe" in done.stderr


@pytest.mark.parametrize("reads", ["stdout", "stderr"])
def test_a_run_whose_reader_goes_away_leaves_a_folder_that_says_so(
    reads: str, prepared: Path, tmp_path: Path
) -> None:
    arguments = [*RUN[:-1], "--data", str(prepared.resolve())]
    with subprocess.Popen(
        [sys.executable, "-m", "joinsim", *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read = process.stdout if reads == "stdout" else process.stderr
        read.readline()
        read.close()
        rest = b"" if read is process.stderr else process.stderr.read()
    assert process.returncode == READER_GONE
    assert b"joinsim: " not in rest
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert UNFINISHED in left or "run.json" in left
    assert not [name for name in left if name.startswith(".")]


@pytest.mark.parametrize("words", ["list", "show nobody", "run --nothing"])
def test_where_stderr_cannot_be_written_the_exit_code_is_that_of_no_verdict(words: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m joinsim {words} >/dev/full 2>/dev/full"
    done = subprocess.run(command, shell=True, cwd=REPOSITORY, timeout=60, check=False)
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("words", "code"), [("list", 0), ("list --json", 0), ("show nobody", 3), ("run nothing", 3)]
)
@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_changes_nothing(
    words: str, code: int, closed: str
) -> None:
    command = f"{shlex.quote(sys.executable)} -m joinsim {words} {closed}"
    done = subprocess.run(
        command, shell=True, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr
    assert ("joinsim: " in done.stderr) == (code == 3 and "2>" not in closed)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("words", ["show spo_join", "list --json"])
def test_letters_that_a_terminal_does_not_have_stop_nothing(words: str, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "joinsim", *words.split()],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if "--json" in words:
        plain = subprocess.run(
            [sys.executable, "-m", "joinsim", *words.split()],
            cwd=REPOSITORY,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert json.loads(done.stdout.decode(encoding)) == json.loads(plain.stdout)
        assert not plain.stdout.isascii()


def test_what_libraries_warn_of_is_not_shown() -> None:
    code = (
        "import sys, warnings, joinsim._listing as made\n"
        "real = made.listing\n"
        "made.listing = lambda: warnings.warn('old') or real()\n"
        "from joinsim.cli.command_line import main\n"
        "sys.argv = ['joinsim', 'list', '--json']\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_drawing_that_grows_too_large_is_one_message(
    suffix: str, joinsim: Command, tmp_path: Path
) -> None:
    with file_size_limit(4_000):
        said = joinsim("show", "split_join", "--out", f"drawing.{suffix}")
    refused(said, f"cannot write to drawing.{suffix}: File too large")
    assert not list(tmp_path.iterdir())


class PanicException(BaseException):
    """What libraries in Rust raise."""


@pytest.mark.parametrize("kind", [PanicException, ActorError])
def test_a_fault_in_code_is_one_message_and_says_where_its_traceback_is(
    kind: type[BaseException], joinsim: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def panic() -> None:
        raise kind("operator does not support primitive `Int256`")

    monkeypatch.setattr("joinsim._listing.listing", panic)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = joinsim("list")
    assert said.code == 3
    first, second = said.err.splitlines()
    assert first == f"joinsim: {kind.__name__}: operator does not support primitive `Int256`"
    assert second == f"The traceback is in {next(tmp_path.glob('joinsim-*.txt'))}"


def test_a_fault_of_ours_is_one_message_even_where_its_traceback_cannot_be_saved(
    joinsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault() -> None:
        raise RuntimeError("odd")

    def full(*_: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("joinsim._listing.listing", fault)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    said = joinsim("list")
    assert said.code == 3
    assert said.err.splitlines()[0] == "joinsim: RuntimeError: odd"
    assert said.err.splitlines()[1] == "The traceback could not be saved: No space left on device"


def test_too_little_memory_is_one_message(
    joinsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def need() -> None:
        raise MemoryError("Unable to allocate 75 GiB")

    monkeypatch.setattr("joinsim._listing.listing", need)
    said = joinsim("list")
    assert said.code == 3
    assert said.err == (
        "joinsim: there is not enough memory (Unable to allocate 75 GiB): take fewer tuples, or a "
        "machine with more\n"
    )


@pytest.mark.parametrize("out", ["file", "file/below"])
@pytest.mark.parametrize("name", ["out.svg", ""])
def test_an_output_that_is_a_file_or_below_one_is_one_message(
    out: str, name: str, joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("kept")
    if name:
        said = joinsim("show", "split_join", "--out", f"{out}/{name}")
    else:
        said = joinsim("run", "--query", RUN[2], "--data", prepared, "--out", out)
    refused(said, f"cannot write to {out}", "write to another place")
    assert (tmp_path / "file").read_text() == "kept"
