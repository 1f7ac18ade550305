"""Line breaks inside the quotes of a CSV file, found before anything reads its rows.

Spark cuts a file into lines unless it is told that a record may have several, and then one task
must read the whole file. It takes a quote that nobody closed for the start of such a record, too:
all rows to the next quote, or to the end of the file, would be one text. So a quote before a line
break must be closed where its column ends.
"""

from __future__ import annotations

import gzip
import re
import zlib
from io import BufferedReader
from pathlib import Path

from joins.errors import DataError

_CHUNK_BYTES = 1 << 20


def records_span_lines(path: Path, separator: str) -> bool:
    """Return whether a quoted text of the CSV file at *path* has a line break.

    Raise :exc:`DataError`, which names the line, if such a text does not end in a quote at the end
    of its column, and for a gzip file that is damaged.
    """
    opened = gzip.open if path.name.endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            return _scan(file, path, separator.encode())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file ({error}); copy it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _scan(file: BufferedReader | gzip.GzipFile, path: Path, separator: bytes) -> bool:
    # A quote inside a text is doubled; one that does not begin a column is a character as others.
    begun = rb'([^"]*+(?:""[^"]*+)*+)("?)'
    quoted, rest = re.compile(rb'(?<![^\r\n%b])"%b' % (separator, begun)), re.compile(begun)
    ends = (b"", b"\r", b"\n", separator)
    spans, line = False, 1
    opened_at = 0  # the line of a quote that earlier chunks leave open
    while chunk := file.read(_CHUNK_BYTES):
        chunk += file.readline()
        if line == 1:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        place = 0
        while b'"' in chunk:
            text = rest.match(chunk) if opened_at else quoted.search(chunk, place)
            if text is None:
                break
            place = text.end()
            if opened_at or b"\n" in text[1] or b"\r" in text[1]:
                opened_at = opened_at or line + chunk.count(b"\n", 0, text.start())
                if not text[2]:
                    break
                if chunk[place : place + 1] not in ends:
                    raise _unclosed(path, opened_at)
                spans, opened_at = True, 0
            elif not text[2]:  # at the end of a file that has no line break there
                raise _unclosed(path, line + chunk.count(b"\n", 0, text.start()))
        line += chunk.count(b"\n")
    if opened_at:
        raise _unclosed(path, opened_at)
    return spans


def _unclosed(path: Path, line: int) -> DataError:
    return DataError(
        f"{path}, line {line}: a quote that begins a column there is not closed at the column's "
        'end; close it, or write a quote that belongs to the text as "" within quotes'
    )
