"""Docferry: what both ends agree on, the client SDK and the commands."""

__version__ = "0.1.0"
