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
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from joins.errors import DataError

_CHUNK_BYTES = 1 << 20
_BLANK_LINES = re.compile(rb"(?m)^[\0- ]*\n")  # Spark takes no line for a row that has no more


def records_span_lines(path: Path, separator: str) -> bool:
    """Return whether a quoted text of the CSV file at *path* has a line break.

    Raise :exc:`DataError`, which names the line, if such a text does not end in a quote at the end
    of its column, and for a gzip file that is damaged.
    """
    with opened(path) as file:  # to its end, where a quote may be open
        return sum(is_text for _, is_text in _pieces(file, path, separator.encode())) > 0


def write_with_line_feeds(path: Path, separator: str, to: Path) -> None:
    """Write the CSV file at *path* anew: only LF ends a row, and no line is blank.

    Where records span lines, Spark ends rows in one way throughout a file, and texts lose the CR
    of their own CR LF if rows end so. Texts are copied as they are.
    """
    with opened(path) as file, to.open("wb") as copy:
        for piece, is_text in _pieces(file, path, separator.encode()):
            if not is_text:
                piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                piece = _BLANK_LINES.sub(b"", piece)
            copy.write(piece)


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader | gzip.GzipFile]:
    """Open the CSV file at *path*; raise :exc:`DataError` where it cannot be read."""
    try:
        with (gzip.open if path.name.lower().endswith(".gz") else open)(path, "rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file ({error}); copy it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _pieces(
    file: BufferedReader | gzip.GzipFile, path: Path, separator: bytes
) -> Iterator[tuple[bytes, bool]]:
    """Yield the file in pieces, each with whether it is within a text that has line breaks.

    A piece that is not begins with a line or with the quote at the end of such a text.
    """
    # A quote inside a text is doubled; one that does not begin a column is a character as others.
    # One match passes all texts that end on their line: a step of Python for each took 11 times as
    # long, where every text is quoted.
    on_one_line = rb'(?<![^\r\n%b])"[^"\r\n]*+(?:""[^"\r\n]*+)*+"' % separator
    within = rb'(?<=[^\r\n%b])"' % separator
    ordinary = re.compile(rb'(?:[^"]++|%b|%b)*+' % (on_one_line, within))
    text_and_quote = re.compile(rb'[^"]*+(?:""[^"]*+)*+("?)')
    ends = (b"", b"\r", b"\n", separator)
    line = 1
    opened_at = 0  # the line of a quote that is still open
    while chunk := file.read(_CHUNK_BYTES):
        chunk += file.readline()
        if line == 1:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        place = start = 0
        while place < len(chunk):
            if not opened_at:
                passed = ordinary.match(chunk, place)
                assert passed is not None
                place = passed.end() + 1  # behind a quote whose text does not end on its line
                yield chunk[start:place], False
                start = place
                if place > len(chunk):
                    break
                opened_at = line + chunk.count(b"\n", 0, place)
            text = text_and_quote.match(chunk, place)
            assert text is not None
            place = text.end()
            yield chunk[start : text.start(1)], True
            start = text.start(1)  # the quote at its end, if there is one
            if text[1]:
                if chunk[place : place + 1] not in ends:
                    raise _unclosed(path, opened_at)
                opened_at = 0
        if start < len(chunk):
            yield chunk[start:], False
        line += chunk.count(b"\n")
    if opened_at:
        raise _unclosed(path, opened_at)


def _unclosed(path: Path, line: int) -> DataError:
    return DataError(
        f"{path}, line {line}: a quote that begins a column there is not closed at the column's "
        'end; close it, or write a quote that belongs to the text as "" within quotes'
    )
