"""A document as files that people and other programs open. Pure text here; workbooks and PDFs are the cloud's."""

from docferry.exports.alto import alto
from docferry.exports.content_list import content_list
from docferry.exports.csv_tables import tables_csv
from docferry.exports.hocr import hocr
from docferry.exports.html_page import html_page

__all__ = ["alto", "content_list", "hocr", "html_page", "tables_csv"]
