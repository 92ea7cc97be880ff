"""Whole documents as they are sent: PDF, TIFF, Office and HTML files, page by page."""
