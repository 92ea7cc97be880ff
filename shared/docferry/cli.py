"""The `docferry` command: the client's commands, and those that the edge and the cloud bring."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import NoReturn

import typer
from rich.console import Console

from docferry import __version__, client_commands, demo, model_commands
from docferry.errors import DocferryError

_GROUP = "docferry.commands"
_EXTRAS = {
    "numpy": "edge",
    "cv2": "edge",
    "PIL": "edge",
    "onnxruntime": "edge",
    "starlette": "edge",
    "uvicorn": "edge",
    "prometheus_client": "edge",
    "structlog": "edge",
    "opentelemetry": "tracing",
    "cryptography": "cloud",
    "pywebpush": "cloud",
    "py_vapid": "cloud",
    "alembic": "cloud",
    "obstore": "cloud",
    "onnx": "dev",
    "sqlalchemy": "cloud",
    "dbos": "cloud",
    "httpx": "cloud",
    "jinja2": "cloud",
    "grpc_health": "cloud",
    "grpc_reflection": "cloud",
    "lxml": "cloud",
    "openpyxl": "cloud",
    "pypdfium2": "cloud",
    "docx": "cloud",
    "pptx": "cloud",
    "reportlab": "cloud",
    "xlsxwriter": "cloud",
}
"""Which extra brings a module that a bare install does not have."""


def application() -> typer.Typer:
    """All commands of this installation."""
    app = typer.Typer(
        name="docferry",
        help="Reads paper at the edge, understands it in the cloud, pushes the finished analysis to whoever waits.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    app.command("submit")(client_commands.submit)
    app.command("watch")(client_commands.watch)
    app.command("get")(client_commands.get)
    app.command("fill")(client_commands.fill)
    app.command("export")(client_commands.export)
    app.command("demo")(demo.demo)
    app.add_typer(model_commands.application(), name="models")
    for entry in metadata.entry_points(group=_GROUP):
        command = entry.load()
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=entry.name)
        else:
            app.command(entry.name)(command)
    return app


def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        typer.echo(f"docferry {__version__}")
        raise typer.Exit


def main() -> NoReturn:
    """Run the command line; what a user can cause ends in one clear message, never a traceback."""
    try:
        application()()
    except DocferryError as error:
        fail(error.reason, error.remedy)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _EXTRAS:
            raise
        # The cloud's extra brings the edge's modules too, so its own commands ask for that one.
        extra = "cloud" if sys.argv[1:2] == ["cloud"] else _EXTRAS[module]
        fail(f"this command needs the extra {extra!r}", f"pip install 'docferry[{extra}]'")
    except KeyboardInterrupt:
        sys.exit(130)
    raise AssertionError("the command line ends by SystemExit")


def fail(reason: str, remedy: str) -> NoReturn:
    """Say what is wrong and what to do, on standard error, and end with status 1."""
    console = Console(stderr=True, highlight=False)
    console.print("[bold red]error:[/]", end=" ")
    console.print(reason, markup=False)
    if remedy:
        console.print(f"       {remedy}", markup=False, style="dim")
    sys.exit(1)


if __name__ == "__main__":
    main()
