"""The commands in docs/cloud.md and README.md do what they say."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.asyncio(loop_scope="module")


def commands() -> list[str]:
    """The indented commands of the HTTP section; a line that ends in `|` goes on."""
    section = (ROOT / "docs" / "cloud.md").read_text().partition("## HTTP")[2].partition("\n## ")[0]
    lines = "\n".join(line.strip() for line in re.findall(r"^    (.+)$", section, re.MULTILINE))
    return lines.replace("|\n", "| ").splitlines()


async def run(command: str, folder: Path, **environment: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "NO_PROXY": "*", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are curl's")
async def test_every_example_works(http, make_envelope, small_png, tmp_path):
    analysis = await http.caller.submit(make_envelope())
    await http.caller.finished(analysis.analysis_id)
    (tmp_path / "receipt.jpg").write_bytes(small_png)
    there = {"URL": http.url, "TOKEN": http.caller.token, "ID": analysis.analysis_id}
    found = commands()
    assert len(found) == 13
    for command in found:
        code, out = await run(command, tmp_path, **there)
        # Events have no end: curl's own limit of time ends it.
        assert code == (28 if "/v1/events" in command else 0), (command, out)
        assert '"error":{' not in out, (command, out)
    assert (tmp_path / "receipt.md").read_text()
    readme = re.search(r"`(curl .*/v1/read)`", (ROOT / "README.md").read_text())
    assert readme is not None
    command = readme.group(1).replace("http://127.0.0.1:8080", http.url)
    code, out = await run(f'{command} -sS -H "Authorization: Bearer $TOKEN"', tmp_path, **there)
    assert (code, '"answer":"9.00"' in out) == (0, True), out
