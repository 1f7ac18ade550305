"""Starts and stops Spark, and finds the Java that Spark and Flink run on.

Spark is local here: one JVM beside this process, bound to the loopback interface, its output in a
file so that only our own messages reach the terminal.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.hosting.descendants import ending_with
from joins.machine.cache import cache_folder
from spark_bridge.engines import EngineUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_WAIT_S = 10  # a JVM that has not ended by then hangs
_STORE_WAIT_S = 300  # nor then, where it stores its classes
_LOOK_S = 0.02  # how often to see whether the JVM is up
_JAVA_MIN = 17  # the oldest Java that Spark 4 runs on
_SET_BY_SPARK = {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
"""Environment variables that an earlier session of this process has left."""
_OPENED: list[str] = [
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
            "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref",
            "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar",
        )
    ),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
]  # fmt: skip
"""What Spark reaches of Java's own, as `org.apache.spark.launcher.JavaModuleOptions` lists it."""
_QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_LATE = ["-XX:CompileThresholdScaling=3"]
_UNVERIFIED = [
    # To verify the classes of Spark's own jars is a tenth of the work on small data.
    "-XX:+IgnoreUnrecognizedVMOptions",  # a later Java may have no such option
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
]
_REMEDY = (
    f"joinsim needs Java {_JAVA_MIN} or newer for {{}}: install a JRE (for example "
    "'apt install openjdk-17-jre-headless') or set JAVA_HOME to the folder of one"
)


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """How Spark is started."""

    master: str = "local[2, 4]"
    """What Spark calls so: ``local[2, 4]`` is two threads in the JVM, and up to four attempts at a
    task whose Python worker was lost."""
    memory: str = "2g"
    """Heap of the JVM, in Spark's notation (``2g``). Larger data spills to disk."""
    quick_start: bool = False
    """Compile the JVM's code once and lightly, and do not verify it. It saves seconds on small data
    and costs throughput on large data, except where the JVM only passes batches on to Python: then
    the compiler leaves the cores to them."""
    compile_late: bool = False
    """Compile the JVM's code when it has been run three times as often as usual. Where the work
    lasts a minute or less, much of what would be compiled is not needed again."""
    store_classes: Path | None = None
    """A file in which the JVM stores its classes as it ends, see `spark_bridge.class_archive`."""


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
    version = re.search(r'(?m)(?:^JAVA_VERSION=|version )"(\d+)(?:\.(\d+))?', _describe_java(java))
    if version is None:
        raise EngineUnavailable(f"{java} does not answer -version as Java does. {remedy}")
    # Java 8 called itself 1.8.
    major = int(version[2]) if version[1] == "1" and version[2] else int(version[1])
    if major < _JAVA_MIN:
        raise EngineUnavailable(f"{java} is Java {major}. {remedy}")
    return java


def _describe_java(java: Path) -> str:
    """Return a text with the version of *java*: of the file beside it, or its own answer."""
    with suppress(OSError):  # a JDK's file: read at once, where a JVM takes a quarter of a second
        return (java.resolve().parents[1] / "release").read_text()
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    return answer.stderr + answer.stdout


def _find_pyspark() -> Path:
    """Return pyspark's folder, without importing it."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise EngineUnavailable(
            "Spark is not installed: it is an extra, pip install 'joinsim[spark]'"
        )
    return Path(found.origin).parent


_lasting: list[ExitStack] = []
"""Of every `lasting_session`, what ends with it."""


@contextmanager
def lasting_session() -> Iterator[None]:
    """Have one session for all that asks for one: Spark starts with the first, and stays up.

    It stops at the end of this context. Starting it takes longer than preparing a small stream.
    """
    with ExitStack() as until_the_end:
        _lasting.append(until_the_end)
        try:
            yield
        finally:
            _lasting.pop()


@contextmanager
def spark_session(options: SessionOptions | None = None) -> Iterator[SparkSession]:
    """Start Spark and yield its session; stop the JVM at the end, whatever happens in between.

    A session that is already active in this process is yielded as it is, and left running; so is
    one that started in a `lasting_session`.

    Raise :exc:`EngineUnavailable` if pyspark or Java is missing, if Java is too old, or if the JVM
    ended before it was ready or while it was needed.
    """
    active = active_session()
    if active is not None:
        yield active
    elif _lasting:
        yield _lasting[-1].enter_context(_started_session(options))
    else:
        with _started_session(options) as session:
            yield session


@contextmanager
def _started_session(options: SessionOptions | None) -> Iterator[SparkSession]:
    """Start Spark and yield its session; stop the JVM at the end."""
    _find_pyspark()
    options = options or SessionOptions()
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="joinsim-spark-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "spark.log"
        conf, gateway = _conf(options, Path(folder)), None
        wait_s = _STORE_WAIT_S if options.store_classes else STOP_WAIT_S

        def start() -> None:
            nonlocal gateway
            gateway = _start_jvm(java, options, conf, log)

        # Interrupted while it waits for the JVM, pyspark returns nothing by which to end it.
        with ending_with(lambda: _stop(gateway, wait_s), start), _reporting_its_end(gateway, log):
            yield _connect(conf, gateway, log)


def active_session() -> SparkSession | None:
    """Return the Spark session that runs in this process, if one does."""
    if "pyspark" not in sys.modules:
        return None  # importing it takes time
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    # Another thread than the one that started Spark has no active session, but the same context.
    return SparkSession.getActiveSession() or SparkSession(context)


def session_beside(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return another session on the JVM of *spark*, with these *settings* of its own."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def _conf(options: SessionOptions, folder: Path) -> Any:
    from pyspark import SparkConf

    settings = {
        "spark.app.name": "joinsim",
        "spark.master": options.master,
        "spark.driver.memory": options.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(_java_options(options)),
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
    return SparkConf().setAll(list(settings.items()))


def _java_options(options: SessionOptions) -> list[str]:
    quick = _QUICK if options.quick_start else []
    if options.store_classes:  # what is stored has to be verified
        return [*quick, f"-XX:ArchiveClassesAtExit={options.store_classes}"]
    if options.quick_start:
        return [*quick, *_UNVERIFIED]
    return _LATE if options.compile_late else []


def classes_path(java: Path) -> Path:
    """Return where `spark_bridge.class_archive` stores the classes of this Spark for *java*.

    Raise :exc:`EngineUnavailable` if pyspark is missing.
    """
    digest = blake2b(f"{java.resolve()} {_find_pyspark()}".encode(), digest_size=8).hexdigest()
    return cache_folder().parent / "spark" / f"classes-{digest}.jsa"


def _mapping_classes(java: Path) -> list[str]:
    path = classes_path(java)
    if not path.is_file() or ":" in str(path):  # which Java would take for two files
        return []
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def _start_jvm(java: Path, options: SessionOptions, conf: Any, log: Path) -> Any:
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
    if _is_plain():
        return _launch(java, options, log)
    with log.open("wb") as output:
        try:
            return launch_gateway(conf, {"stdout": output, "stderr": output})
        except PySparkException as error:
            raise EngineUnavailable(f"Spark did not start: {_last_words(log)}") from error


def _is_plain() -> bool:
    """Return whether the environment has nothing for `spark-submit` to look up.

    That takes a JVM and two shells before the one that is wanted: more than half a second.
    """
    configured = {name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_SUBMIT"))}
    return configured <= _SET_BY_SPARK


def _launch(java: Path, options: SessionOptions, log: Path) -> Any:
    """Start the JVM that pyspark talks to, as `spark-submit` would; return the connection to it."""
    from py4j.protocol import Py4JError
    from pyspark.java_gateway import launch_gateway
    from pyspark.serializers import UTF8Deserializer, read_int

    command: list[str] = [
        str(java),
        "-cp",
        f"{_find_pyspark()}/jars/*",
        f"-Xmx{options.memory}",
        *_OPENED,
        *_java_options(options),
        *([] if options.store_classes else _mapping_classes(java)),
    ]
    with tempfile.TemporaryDirectory() as folder, log.open("wb") as output:
        address = Path(folder) / "address"
        process = subprocess.Popen(
            [*command, "org.apache.spark.api.python.PythonGatewayServer"],
            stdin=subprocess.PIPE,  # it ends with its input
            stdout=output,
            stderr=output,
            env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)},
            process_group=0,  # Ctrl-C is for Python, which then ends it
        )
        try:
            while not address.is_file():
                if process.poll() is not None:
                    raise _not_started(process, log)
                time.sleep(_LOOK_S)
            with address.open("rb") as info:
                port, secret = read_int(info), UTF8Deserializer().loads(info)
            ready = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
            os.environ.update(ready)
            try:
                gateway = launch_gateway()  # which starts nothing, but connects
            except (Py4JError, ConnectionError) as error:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_WAIT_S)
                raise _not_started(process, log) from error
            finally:
                for name in ready:
                    del os.environ[name]
        except BaseException:
            process.kill()
            process.wait()
            raise
    gateway.proc = process
    return gateway


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
    """Raise :exc:`EngineUnavailable` for whatever is raised because the JVM has ended.

    A broken connection to it leads to many errors, of Python, of py4j and of our own.
    """
    try:
        yield
    except Exception as error:
        if _answers(gateway):
            raise
        try:
            gateway.proc.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:  # it is alive: something else was not reached
            raise error from None
        raise EngineUnavailable(
            f"Spark's Java process ended in the middle of its work: "
            f"{_why_it_ended(gateway.proc, log)}. Run it again; a query with a checkpoint goes on "
            "from it"
        ) from error


def _answers(gateway: Any) -> bool:
    """Return whether the JVM behind *gateway* runs a method that does nothing much."""
    with suppress(Exception):
        return bool(gateway.jvm.java.lang.System.nanoTime())
    return False


def _why_it_ended(process: subprocess.Popen[bytes], log: Path) -> str:
    code = process.poll()
    if code is not None and code < 0:
        return f"it was killed by signal {-code} (out of memory?)"
    return _last_words(log)


def _not_started(process: subprocess.Popen[bytes], log: Path) -> EngineUnavailable:
    return EngineUnavailable(f"Spark did not start: {_why_it_ended(process, log)}")


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    lines = [line for line in lines if not line.startswith("\tat ")]
    if not lines:
        return "the Java process ended without a message"
    first = next((at for at, line in enumerate(lines) if "error" in line.lower()), -1)
    return " ".join(lines[first:][:2])


def _stop(gateway: Any, wait_s: float) -> None:
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
            process.wait(wait_s)
            return
        except subprocess.TimeoutExpired:
            end()
    process.wait()
