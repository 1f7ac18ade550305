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
    # One match passes all texts that end on their line: a step of Python for each took 11 times as
    # long, where every text is quoted.
    on_one_line = rb'(?<![^\r\n%b])"[^"\r\n]*+(?:""[^"\r\n]*+)*+"' % separator
    within = rb'(?<=[^\r\n%b])"' % separator
    ordinary = re.compile(rb'(?:[^"]++|%b|%b)*+' % (on_one_line, within))
    text_and_quote = re.compile(rb'[^"]*+(?:""[^"]*+)*+("?)')
    ends = (b"", b"\r", b"\n", separator)
    spans, line = False, 1
    opened_at = 0  # the line of a quote that is still open
    while chunk := file.read(_CHUNK_BYTES):
        chunk += file.readline()
        if line == 1:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        place = 0
        while place < len(chunk):
            if not opened_at:
                passed = ordinary.match(chunk, place)
                assert passed is not None
                place = passed.end() + 1  # behind a quote whose text does not end on its line
                if place > len(chunk):
                    break
                opened_at = line + chunk.count(b"\n", 0, place)
            text = text_and_quote.match(chunk, place)
            assert text is not None
            place = text.end()
            if text[1]:
                if chunk[place : place + 1] not in ends:
                    raise _unclosed(path, opened_at)
                spans, opened_at = True, 0
        line += chunk.count(b"\n")
    if opened_at:
        raise _unclosed(path, opened_at)
    return spans


def _unclosed(path: Path, line: int) -> DataError:
    return DataError(
        f"{path}, line {line}: a quote that begins a column there is not closed at the column's "
        'end; close it, or write a quote that belongs to the text as "" within quotes'
    )
