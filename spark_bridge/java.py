"""Where Java is: Spark and Flink run on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from spark_bridge.errors import EngineUnavailable

_JAVA_MIN = 17  # the oldest Java that Spark 4 runs on
_REMEDY = (
    f"joinsim needs Java {_JAVA_MIN} or newer for {{}}: install a JRE (for example "
    "'apt install openjdk-17-jre-headless') or set JAVA_HOME to the folder of one"
)


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
        found = shutil.which("java")
        if found is None:
            raise EngineUnavailable(f"no Java on PATH, and JAVA_HOME is not set. {remedy}")
        java = Path(found)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr + told.stdout)
    if version is None:
        raise EngineUnavailable(f"{java} does not answer to -version as Java does. {remedy}")
    # Java 8 called itself 1.8.
    major = int(version[2]) if version[1] == "1" and version[2] else int(version[1])
    if major < _JAVA_MIN:
        raise EngineUnavailable(f"{java} is Java {major}. {remedy}")
    return java
