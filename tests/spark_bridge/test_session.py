"""Starting and stopping Spark without a word on the terminal and without a trace."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_bridge import session
from spark_bridge.engines import EngineUnavailable, one_line
from spark_bridge.pipeline.pipeline import prepare
from spark_bridge.pipeline.raw_source import RawSource
from spark_bridge.session import find_java, spark_session
from tests.spark_bridge.helpers import write_csv

ROOT = Path(__file__).parents[2]


def fake_java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


def test_no_java_is_reported_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineUnavailable, match=r"needs Java 17 or newer .* set JAVA_HOME"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EngineUnavailable, match=r"JAVA_HOME is .* no bin/java"):
        find_java()


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.2", 11)])
def test_an_old_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", version)))
    with pytest.raises(EngineUnavailable, match=f"is Java {major}. joinsim needs Java 17"):
        find_java()


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.1", "25-ea"])
def test_a_new_java_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    home = fake_java(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == home / "bin" / "java"


def test_a_jdks_own_file_is_read_in_place_of_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.15")
    (home / "release").write_text('IMPLEMENTOR_VERSION="x17"\nJAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(EngineUnavailable, match=r"is Java 11\. joinsim needs Java 17"):
        find_java()


def test_what_spark_opens_of_java_is_what_its_own_launcher_opens() -> None:
    """A new Spark may need more: its launcher has the list as constants of a class."""
    import pyspark

    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-launcher_*.jar")
    with zipfile.ZipFile(jar) as archive:
        constants = archive.read("org/apache/spark/launcher/JavaModuleOptions.class")
    listed = {one.decode() for one in re.findall(rb"--add-opens=[\w./]+=ALL-UNNAMED", constants)}
    assert listed == {one for one in session._OPENED if one.startswith("--add-opens")}


def test_preparing_without_java_fails_before_spark_is_imported(tmp_path: Path) -> None:
    """In a process of its own: this one has imported pyspark already."""
    file = write_csv(tmp_path / "raw.csv", ["ts"], [[1]])
    script = textwrap.dedent(
        f"""
        import os, sys
        os.environ.pop("JAVA_HOME", None)
        os.environ["PATH"] = "/nowhere"
        from spark_bridge.engines import EngineUnavailable
        from spark_bridge.pipeline.pipeline import prepare
        from spark_bridge.pipeline.raw_source import RawSource
        import spark_bridge.prepared
        try:
            prepare(RawSource(name="R", paths=[{str(file)!r}]), {str(tmp_path / "out")!r})
        except EngineUnavailable as error:
            print("pyspark" in sys.modules, error)
        """
    )
    printed = _run(script)
    assert printed.startswith("False no Java on PATH")
    assert not (tmp_path / "out").exists()


def test_spark_comes_and_goes_in_silence_even_when_the_work_fails() -> None:
    script = textwrap.dedent(
        """
        import os
        from pathlib import Path
        from spark_bridge.session import SessionOptions, spark_session
        quick = SessionOptions(quick_start=True)
        pids = []
        for fails in (True, False):
            try:
                with spark_session(quick) as spark:
                    pid = spark.sparkContext._gateway.proc.pid
                    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
                    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
                    with spark_session() as inner:
                        assert inner is spark
                    assert inner.sparkContext._gateway.proc.poll() is None
                    warehouse = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
                    if fails:
                        spark.sql("select nope")
            except Exception as error:
                assert fails, error
            assert not Path(f"/proc/{pid}").exists(), "the JVM is still there"
            assert not Path(warehouse).parent.exists(), "its folder is still there"
            pids.append(pid)
        assert pids[0] != pids[1]
        """
    )
    assert _run(script) == ""


def test_within_a_lasting_session_spark_starts_once_when_it_is_needed_and_ends_with_it() -> None:
    script = textwrap.dedent(
        """
        import os, signal
        from pathlib import Path
        import psutil
        from spark_bridge.session import EngineUnavailable, SessionOptions
        from spark_bridge.session import lasting_session, spark_session
        quick = SessionOptions(quick_start=True)
        def ask():
            with spark_session(quick) as spark:
                assert spark.range(3).count() == 3
                return spark.sparkContext._gateway.proc.pid
        with lasting_session():
            assert not psutil.Process().children(), "nobody has asked for it"
            java = ask()
            assert ask() == java
        assert not Path(f"/proc/{java}").exists()
        try:
            with lasting_session():
                ask()
                with spark_session() as spark:
                    java = spark.sparkContext._gateway.proc.pid
                    os.kill(java, signal.SIGKILL)
                    spark.range(3).count()
        except EngineUnavailable as error:
            print(error)
        assert ask() != java, "a session of its own again"
        """
    )
    printed = _run(script)
    assert printed.startswith("Spark's Java process ended in the middle of its work: ")
    assert printed.count("\n") == 1


def test_spark_interrupted_while_java_starts_leaves_no_java_behind() -> None:
    script = textwrap.dedent(
        """
        from types import SimpleNamespace
        import psutil
        from spark_bridge import session
        from spark_bridge.session import spark_session
        def interrupt(seconds):
            assert psutil.Process().children()
            raise KeyboardInterrupt
        session.time = SimpleNamespace(sleep=interrupt)
        try:
            with spark_session():
                raise AssertionError("it started")
        except KeyboardInterrupt:
            print(psutil.Process().children())
        """
    )
    assert _run(script) == "[]\n"


def test_a_second_session_of_a_process_needs_no_launcher_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_BUFFER_SIZE", "65536")
    assert session._is_plain()
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert not session._is_plain()


def test_ctrl_c_in_the_middle_of_a_query_says_nothing_of_its_own() -> None:
    script = textwrap.dedent(
        """
        import os, signal, threading
        from spark_bridge.session import SessionOptions, spark_session
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with spark_session(SessionOptions(quick_start=True)) as spark:
                threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
                spark.range(1 << 40).selectExpr("sum(id % 7)").collect()
        except KeyboardInterrupt:
            print("stopped")
        """
    )
    assert _run(script) == "stopped\n"


def test_a_java_that_is_killed_while_it_works_is_reported_and_nothing_else() -> None:
    script = textwrap.dedent(
        """
        import os, signal, threading
        from spark_bridge.session import SessionOptions, EngineUnavailable, spark_session
        def count(batches):
            for batch in batches:
                yield batch
        try:
            with spark_session(SessionOptions(quick_start=True)) as spark:
                # Passing through Python, it keeps a connection that Java's end breaks as well.
                spark.range(9).mapInArrow(count, "id bigint").count()
                java = spark.sparkContext._gateway.proc.pid
                threading.Timer(2, os.kill, (java, signal.SIGKILL)).start()
                spark.range(1 << 40).selectExpr("sum(id % 7)").collect()
        except EngineUnavailable as error:
            print(error)
        """
    )
    printed = _run(script)
    assert printed.startswith("Spark's Java process ended in the middle of its work: ")
    assert printed.count("\n") == 1


def test_a_spark_that_cannot_start_says_why() -> None:
    script = textwrap.dedent(
        """
        import os
        from spark_bridge.session import SessionOptions, EngineUnavailable, spark_session
        def start(**options):
            try:
                with spark_session(SessionOptions(**options)):
                    raise AssertionError("it started")
            except EngineUnavailable as error:
                print(error)
        start(memory="1k")
        start(master="nonsense")
        os.environ["SPARK_CONF_DIR"] = os.getcwd()  # so that spark-submit starts it
        start(memory="1k")
        """
    )
    first, second, third = _run(script).splitlines()
    for line in (first, second, third):
        assert line.startswith("Spark did not start: ")
    assert "heap" in first.lower()
    assert "Could not parse Master URL: 'nonsense'" in second
    assert "heap" in third.lower()


def test_a_running_session_is_shared(spark: Any, tmp_path: Path) -> None:
    with spark_session() as same:
        # Which of the sessions that share a Spark is active depends on what ran before.
        assert same.sparkContext is spark.sparkContext
    file = write_csv(tmp_path / "raw.csv", ["ts"], [[1]])
    (stream,) = prepare(RawSource(name="R", paths=[file]), tmp_path / "out")
    assert stream.rows == 1
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(_rows_in_shared_session).result(120) == 2
    settings = ("spark.sql.caseSensitive", "spark.sql.legacy.parquet.nanosAsLong")
    active = SparkSession.getActiveSession()
    assert [active.conf.get(name) for name in settings] == ["false", "false"], "ours stay ours"
    assert spark.range(3).count() == 3, "and left running"


def _rows_in_shared_session() -> int:
    with spark_session() as session:
        return len(session.range(2).collect())


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("[A_B] what. SQLSTATE: 42\n== SQL ==\nx", "[A_B] what."),
        ("Job aborted: x\n: org.X: [C_D] inner. SQLSTATE: 1\n at org.y[z]", "[C_D] inner."),
        ("plain\nsecond", "plain"),
        ("", "ValueError"),
    ],
)
def test_one_line_keeps_the_complaint_alone(said: str, line: str) -> None:
    assert one_line(ValueError(said)) == line


def _run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout
