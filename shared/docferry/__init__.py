"""Docferry: what both ends agree on, the client SDK and the commands."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docferry.async_client import AsyncClient
    from docferry.client import Client

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "__version__"]


def __getattr__(name: str) -> Any:
    """The clients, loaded when somebody asks for one: commands that call nobody need no gRPC."""
    if name == "AsyncClient":
        from docferry.async_client import AsyncClient

        return AsyncClient
    if name == "Client":
        from docferry.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
