"""Starts and stops Spark, and finds the Java that Spark and Flink run on.

Spark is local here: one JVM beside this process, bound to the loopback interface, its output in a
file so that only our own messages reach the terminal. Clusters are reached by the ``master``
option; nothing here manages them.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.hosting.descendants import ending_with
from spark_bridge.errors import EngineUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_WAIT_S = 10  # a JVM that has not ended by then hangs
_JAVA_MIN = 17  # the oldest Java that Spark 4 runs on
_REMEDY = (
    f"joinsim needs Java {_JAVA_MIN} or newer for {{}}: install a JRE (for example "
    "'apt install openjdk-17-jre-headless') or set JAVA_HOME to the folder of one"
)


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """How Spark is started.

    Attributes
    ----------
    master
        Spark master URL; ``local[2]`` is two threads in one JVM here.
    memory
        Heap of the JVM, in Spark's notation (``2g``). Larger data spills to disk.
    quick_start
        Compile the JVM's code once and lightly. It saves seconds on small data and costs throughput
        on large data, except where the JVM only passes batches on to Python: then the compiler
        leaves the cores to them.
    extra
        Further Spark settings, by their Spark names; they override ours.
    """

    master: str = "local[2]"
    memory: str = "2g"
    quick_start: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)


def find_java(*, wanted_by: str = "Spark") -> Path:
    """Return the Java program that Spark or Flink will run, from ``JAVA_HOME`` or else ``PATH``.

    Raise :exc:`EngineUnavailable` when there is none or it is too old.
    """
    remedy = _REMEDY.format(wanted_by)
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise EngineUnavailable(
                f"JAVA_HOME is {home}, but there is no bin/java in it. {remedy}"
            )
    else:
        on_path = shutil.which("java")
        if on_path is None:
            raise EngineUnavailable(f"no Java on PATH, and JAVA_HOME is not set. {remedy}")
        java = Path(on_path)
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if version is None:
        raise EngineUnavailable(f"{java} does not answer -version as Java does. {remedy}")
    # Java 8 called itself 1.8.
    major = int(version[2]) if version[1] == "1" and version[2] else int(version[1])
    if major < _JAVA_MIN:
        raise EngineUnavailable(f"{java} is Java {major}. {remedy}")
    return java


@contextmanager
def spark_session(options: SessionOptions | None = None) -> Iterator[SparkSession]:
    """Start Spark and yield its session; stop the JVM at the end, whatever happens in between.

    A session that is already active in this process is yielded as it is, and left running.

    Raise :exc:`EngineUnavailable` if Java is missing or too old, or if the JVM ended before it was
    ready or while it was needed.
    """
    active = _active_session()
    if active is not None:
        yield active
        return
    options = options or SessionOptions()
    find_java()
    with tempfile.TemporaryDirectory(prefix="joinsim-spark-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "spark.log"
        conf, gateway = _conf(options, Path(folder)), None

        def start() -> None:
            nonlocal gateway
            gateway = _start_jvm(conf, log)

        # Interrupted while it waits for the JVM, pyspark returns nothing by which to end it.
        with ending_with(lambda: _stop(gateway), start):
            spark = _connect(conf, gateway, log)
            with _reporting_its_end(gateway, log):
                yield spark


def _active_session() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None  # importing it takes time
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    # Another thread than the one that started Spark has no active session, but the same context.
    return SparkSession.getActiveSession() or SparkSession(context)


def _conf(options: SessionOptions, folder: Path) -> Any:
    from pyspark import SparkConf

    java = ["-XX:TieredStopAtLevel=1"] if options.quick_start else []
    settings = {
        "spark.app.name": "joinsim",
        "spark.master": options.master,
        "spark.driver.memory": options.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(java),
        # Workers import joins and actors from the repository root, wherever the driver was started.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(
            [
                str(Path(__file__).resolve().parents[1]),
                *filter(None, [os.environ.get("PYTHONPATH")]),
            ]
        ),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    conf = SparkConf()
    for name, value in (settings | dict(options.extra)).items():
        conf.set(name, value)
    return conf


def _start_jvm(conf: Any, log: Path) -> Any:
    from pyspark import accumulators
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.logger import PySparkLogger

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Both also log what they raise, with a Java stack trace; we report it once.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_the_gateway)
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # Of a broken connection to the JVM, it prints a traceback from a thread of its own.
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        setattr(server, "handle_error", lambda *_: None)  # noqa: B010  (mypy: a method)
    with log.open("wb") as output:
        try:
            return launch_gateway(conf, {"stdout": output, "stderr": output})
        except PySparkException as error:
            raise EngineUnavailable(f"Spark did not start: {_last_words(log)}") from error


def _not_of_the_gateway(record: logging.LogRecord) -> bool:
    """Return False for records of py4j, which logs Ctrl-C at the root with a traceback."""
    return record.module != "java_gateway"


def _connect(conf: Any, gateway: Any, log: Path) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    try:
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("ERROR")
        return SparkSession(context)
    except Py4JError as error:
        lines = str(error).splitlines()
        cause = next((line for line in lines if "Exception:" in line), lines[0])
        raise EngineUnavailable(
            f"Spark did not start: {cause.strip()} {_last_words(log)}"
        ) from error


@contextmanager
def _reporting_its_end(gateway: Any, log: Path) -> Iterator[None]:
    """Raise :exc:`EngineUnavailable` for whatever a broken connection to an ended JVM leads to."""
    from py4j.protocol import Py4JNetworkError

    try:
        yield
    except (ConnectionError, Py4JNetworkError) as error:
        try:
            code = gateway.proc.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:  # it is alive: something else was not reached
            raise error from None
        killed = f"it was killed by signal {-code} (out of memory?)" if code < 0 else None
        raise EngineUnavailable(
            f"Spark's Java process ended in the middle of its work: "
            f"{killed or _last_words(log)}. Run it again; a query with a checkpoint goes on from it"
        ) from error


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    lines = [line for line in lines if not line.startswith("\tat ")]
    if not lines:
        return "the Java process ended without a message"
    first = next((at for at, line in enumerate(lines) if "error" in line.lower()), -1)
    return " ".join(lines[first:][:2])


def _stop(gateway: Any) -> None:
    """End Spark and the JVM behind *gateway*, the latter by its process if need be."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # The JVM may have ended already, about which pyspark warns.
    with suppress(Exception), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()
        elif SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    if gateway is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    with suppress(OSError):
        process.stdin.close()  # the gateway's JVM ends with its input
    for end in (process.terminate, process.kill):
        try:
            process.wait(STOP_WAIT_S)
            return
        except subprocess.TimeoutExpired:
            end()
    process.wait()
