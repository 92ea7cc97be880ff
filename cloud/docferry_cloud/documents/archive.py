"""An Office file before it is unpacked: is it as small as it looks?

Such a file is a ZIP archive of XML, and both inflate. What is refused here would cost gigabytes in the libraries, which
build an object for every element and, in a workbook, for every cell under a merge.
"""

from __future__ import annotations

import re
import zipfile

from lxml import etree

from docferry.errors import ImageTooLarge
from docferry_cloud.documents.block import MOST_COLUMNS, MOST_ROWS

MOST_UNPACKED = 512 << 20
MOST_XML = 64 << 20
MOST_SHEETS = 200
MOST_ENTRIES = 10_000

_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Z]{1,3})\$?([0-9]{1,7}))?")


def check_archive(archive: zipfile.ZipFile, what: str) -> None:
    """Look at the archive's own list, and at the merges of a workbook's sheets.

    Args:
        what: What the errors call the file.

    Raises:
        ImageTooLarge: It would unpack to more than `MOST_UNPACKED` bytes, `MOST_XML` of them XML; it has too many
            entries or sheets; or a sheet merges more cells than it may have.
    """
    entries = archive.infolist()
    whole = sum(entry.file_size for entry in entries)
    xml = sum(entry.file_size for entry in entries if entry.filename.lower().endswith((".xml", ".rels")))
    sheets = [entry for entry in entries if re.fullmatch(r"xl/worksheets/[^/]+\.xml", entry.filename)]
    for name, found, most in (
        ("bytes when unpacked", whole, MOST_UNPACKED),
        ("bytes of XML", xml, MOST_XML),
        ("entries", len(entries), MOST_ENTRIES),
        ("sheets", len(sheets), MOST_SHEETS),
    ):
        if found > most:
            raise ImageTooLarge(f"{what} has {found} {name}", remedy=f"at most {most} are read; split it")
    for sheet in sheets:
        with archive.open(sheet) as file:
            _check_merges(file, f"{what}: {sheet.filename}")


def _check_merges(file: object, what: str) -> None:
    merged = 0
    for _, element in etree.iterparse(file, tag="{*}mergeCell", resolve_entities=False, no_network=True):
        found = _REFERENCE.fullmatch(element.get("ref", ""))
        element.clear()
        if found and found[3]:
            columns = abs(_column(found[3]) - _column(found[1])) + 1
            merged += columns * (abs(int(found[4]) - int(found[2])) + 1)
        if merged > MOST_ROWS * MOST_COLUMNS:
            raise ImageTooLarge(
                f"{what} merges more than {MOST_ROWS * MOST_COLUMNS} cells", remedy="undo the merge of empty cells"
            )


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
