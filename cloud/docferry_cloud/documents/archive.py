"""An Office file before it is unpacked: is it as small as it looks?

Such a file is a ZIP archive of XML, and both inflate. What is refused here would cost gigabytes in the libraries, which
build an object for every element and, in a workbook, for every cell that is written or lies under a merge.
"""

from __future__ import annotations

import re
import zipfile
from typing import IO
from xml.parsers import expat

from docferry.errors import ImageTooLarge
from docferry_cloud.documents.block import MOST_COLUMNS, MOST_ROWS

MOST_UNPACKED = 512 << 20
MOST_XML = 64 << 20
MOST_SHEETS = 200
MOST_ENTRIES = 10_000

_XML_STARTS = (b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00<", b"\x00\x00\x00<", b"\x4c\x6f\xa7\x94")
"""In any encoding that a parser knows."""

_LOOSE = frozenset(
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_INVALID_TOKEN,
        expat.errors.XML_ERROR_TAG_MISMATCH,
        expat.errors.XML_ERROR_UNDEFINED_ENTITY,
        expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE,
    )
)

_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Z]{1,3})\$?([0-9]{1,7}))?")


def check_archive(archive: zipfile.ZipFile, what: str) -> None:
    """Look at the archive's own list, and at the cells and merges of a workbook's sheets.

    Args:
        what: What the errors call the file.

    Raises:
        ImageTooLarge: It would unpack to more than `MOST_UNPACKED` bytes, `MOST_XML` of them XML; it has too many
            entries or sheets; or a sheet has, or merges, more cells than it may have.
    """
    entries = archive.infolist()
    whole = sum(entry.file_size for entry in entries)
    if len(entries) > MOST_ENTRIES:
        raise _too_many(what, len(entries), "entries", MOST_ENTRIES)
    # By content: what is a sheet is said by relations inside the file, not by names, and any name may hold one.
    marked = [entry for entry in entries if _is_xml(archive, entry)]
    xml = sum(entry.file_size for entry in marked)
    sheets = [entry for entry in marked if entry.filename.startswith("xl/worksheets/")]
    for name, found, most in (
        ("bytes when unpacked", whole, MOST_UNPACKED),
        ("bytes of XML", xml, MOST_XML),
        ("sheets", len(sheets), MOST_SHEETS),
    ):
        if found > most:
            raise _too_many(what, found, name, most)
    if any(entry.filename.startswith("xl/") for entry in entries):
        for entry in marked:
            with archive.open(entry) as file:
                _check_cells(file, f"{what}: {entry.filename}")


def _too_many(what: str, found: int, name: str, most: int) -> ImageTooLarge:
    return ImageTooLarge(f"{what} has {found} {name}", remedy=f"at most {most} are read; split it")


def _is_xml(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    with archive.open(entry) as file:
        start = file.read(64).lstrip(b" \t\r\n")
    return not start or start.startswith(_XML_STARTS)


def _check_cells(file: IO[bytes], what: str) -> None:
    """Look at the places of one XML file's cells, count them and add up its merges, without building its tree."""
    cells = merged = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal cells, merged
        name = name.rpartition(":")[2]
        if name == "c":
            cells += 1
            place = _REFERENCE.fullmatch(attributes.get("r", ""))
            far = place is not None and (int(place[2]) > MOST_ROWS or _column(place[1]) > MOST_COLUMNS)
            if far or cells > MOST_ROWS * MOST_COLUMNS:
                raise ImageTooLarge(
                    f"{what} has a cell {place[0]}" if far and place else f"{what} has more than {cells - 1} cells",
                    remedy=f"at most {MOST_ROWS} rows of {MOST_COLUMNS} columns are read; split the sheet",
                )
        elif name == "mergeCell" and (found := _REFERENCE.fullmatch(attributes.get("ref", ""))) and found[3]:
            columns = abs(_column(found[3]) - _column(found[1])) + 1
            merged += columns * (abs(int(found[4]) - int(found[2])) + 1)
            if merged > MOST_ROWS * MOST_COLUMNS:
                raise ImageTooLarge(
                    f"{what} merges more than {MOST_ROWS * MOST_COLUMNS} cells", remedy="undo the merge of empty cells"
                )

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        parser.ParseFile(file)
    except expat.ExpatError as error:
        # Old drawings beside the sheets are written loosely, and no parser of sheets gets past such a place either.
        if error.code not in _LOOSE:
            raise


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
