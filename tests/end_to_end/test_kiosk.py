"""The real agent with its page: what a browser on the kiosk gets to see while a document is read."""

import json
import socket
import time
from pathlib import Path

import httpx

from tests.end_to_end.conftest import System, free_port


def with_page(system: System, port: int) -> str:
    config = system.folder / "edge.toml"
    config.write_text(config.read_text() + f"[kiosk]\nport = {port}\n")
    system.start("edge")
    return f"http://127.0.0.1:{port}"


def test_the_page_follows_a_document_from_the_inbox(system: System, photos: dict[str, Path]) -> None:
    base = with_page(system, free_port())
    system.until(lambda: bool(system.said("edge", "ready")))
    heard: list[dict] = []
    with httpx.Client(base_url=base, timeout=60) as client:
        assert "Docferry" in client.get("/").text
        assert client.get("/preview").status_code == 404
        with client.stream("GET", "/events") as answer:
            system.put(photos["chinese_receipt"])
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    heard.append(json.loads(line.removeprefix("data: ")))
                    if heard[-1]["type"] == "state":
                        break
    kinds = [event["type"] for event in heard]
    assert kinds[:5] == ["camera", "document", "page", "layout", "lines"]
    assert kinds[-2:] == ["read", "state"]
    assert heard[-1]["state"] == "packed"
    (tree,) = system.said("edge", "read")
    lines = [line["text"] for page in tree["pages"] for region in page["regions"] for line in region["lines"]]
    assert [event["text"] for event in heard if event["type"] == "line"] == lines


def test_a_page_that_cannot_be_served_stops_no_document(system: System, photos: dict[str, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        with_page(system, other.getsockname()[1])
        system.put(photos["chinese_receipt"])
        system.until(lambda: bool(system.said("edge", "read")))
    assert "no kiosk page" in system.log("edge")


def test_an_agent_told_to_stop_leaves_no_reader_behind(system: System, photos: dict[str, Path]) -> None:
    system.start("edge")
    system.until(lambda: bool(system.said("edge", "ready")))
    system.put(photos["two_column_page"])
    system.until(lambda: bool(system.outbox("SELECT 1 FROM documents WHERE read_attempts > 0")))
    agent = system.processes["edge"]
    (child,) = [
        int(stat.parent.name)
        for stat in Path("/proc").glob("[0-9]*/stat")
        if stat.exists() and stat.read_text(errors="replace").rpartition(")")[2].split()[1] == str(agent.pid)
    ]
    agent.terminate()
    assert agent.wait(20) == 0
    end = time.monotonic() + 20
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    system.processes.clear()
    assert system.outbox("SELECT read_attempts, state FROM documents") in ([(0, "captured")], [(1, "packed")])
