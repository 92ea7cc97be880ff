"""A document as ALTO 4, the libraries' XML for text with its place on the page."""

from __future__ import annotations

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.exports.words import Place, place, sure, words, xml

_PICTURES = frozenset({RegionType.IMAGE, RegionType.CHART})


def alto(document: Document, *, title: str = "") -> str:
    """One XML file with all pages, blocks in reading order, each tagged with what it is.

    Args:
        title: Usually the file's name.
    """
    kinds = sorted({region.type.value for page in document.pages for region in page.regions})
    tags = "".join(f'<LayoutTag ID="type_{kind}" LABEL="{kind}"/>' for kind in kinds)
    pages = "".join(_page(page, number) for number, page in enumerate(document.pages, 1))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#">\n'
        "<Description><MeasurementUnit>pixel</MeasurementUnit><sourceImageInformation>"
        f"<fileName>{xml(title)}</fileName></sourceImageInformation></Description>\n"
        + (f"<Tags>{tags}</Tags>\n" if tags else "")
        + f"<Layout>\n{pages}</Layout>\n</alto>\n"
    )


def _page(page: Page, number: int) -> str:
    blocks = "".join(_block(page, region, number) for region in page.regions)
    return (
        f'<Page ID="p{number}" PHYSICAL_IMG_NR="{number}" WIDTH="{page.width}" HEIGHT="{page.height}">\n'
        f"<PrintSpace {_place((0, 0, page.width, page.height))}>\n{blocks}</PrintSpace></Page>\n"
    )


def _block(page: Page, region: Region, number: int) -> str:
    name = f"p{number}_{xml(region.id)}"
    said = f'{_place(place(page, region.box))} TAGREFS="type_{region.type.value}"'
    text = ""
    if region.lines or region.type not in _PICTURES:
        lines = "".join(_line(page, line, number) for line in region.lines)
        text = f'<TextBlock ID="{name}" {said}>\n{lines}</TextBlock>\n'
    picture = f'<Illustration ID="{name}_picture" {said}/>\n' if region.type in _PICTURES else ""
    return picture + text


def _line(page: Page, line: Line, number: int) -> str:
    strings = "<SP/>".join(
        f'<String CONTENT="{xml(word.text)}" {_place(word.place)} WC="{sure(line):.3f}"/>' for word in words(page, line)
    )
    return f'<TextLine ID="p{number}_{xml(line.id)}" {_place(place(page, line.box))}>{strings}</TextLine>\n'


def _place(box: Place) -> str:
    return f'HPOS="{box[0]}" VPOS="{box[1]}" WIDTH="{box[2] - box[0]}" HEIGHT="{box[3] - box[1]}"'
