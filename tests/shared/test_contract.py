"""The generated code is what proto/ says, and the contract follows its own rules."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_generated_code_is_fresh(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run([ROOT / "proto" / "generate.sh", tmp_path], check=True, capture_output=True, env=environment)
    made = {path.name: path.read_bytes() for path in (tmp_path / "docferry" / "v1").iterdir() if path.is_file()}
    committed = {
        path.name: path.read_bytes() for path in (ROOT / "shared" / "docferry" / "v1").iterdir() if path.is_file()
    }
    assert sorted(made) == sorted(committed)
    stale = [name for name in made if made[name] != committed[name]]
    assert not stale, f"run `make proto`: {stale}"


def test_every_enum_has_a_zero_that_says_nothing() -> None:
    from docferry.v1 import analysis_pb2, document_pb2, envelope_pb2, event_pb2

    for module in (analysis_pb2, document_pb2, envelope_pb2, event_pb2):
        enums = list(module.DESCRIPTOR.enum_types_by_name.values())
        for message in module.DESCRIPTOR.message_types_by_name.values():
            enums += message.enum_types
        for enum in enums:
            assert enum.values_by_number[0].name.endswith("_UNSPECIFIED"), enum.full_name


def test_every_region_type_has_a_number_on_the_wire() -> None:
    from docferry.document import RegionType
    from docferry.wire import region_type_from_proto, region_type_to_proto

    for kind in RegionType:
        assert region_type_from_proto(region_type_to_proto(kind)) is kind
    assert region_type_from_proto(9999) is RegionType.UNKNOWN


def lint(proto: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run([proto / "lint.sh"], check=False, capture_output=True, text=True, env=environment)


def test_buf_finds_nothing_to_complain_of() -> None:
    clean = lint(ROOT / "proto")
    assert clean.returncode == 0, clean.stdout + clean.stderr


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("  uint64 original_bytes = 6;", "  string original_bytes = 6;", "changed type"),
        ("PART_KIND_CROP = 2", "CROP = 2", "prefixed"),
        ("// A compressed message. It is unpacked only up to stated limits in size and in ratio.", "", "comment"),
    ],
)
def test_buf_would_find_what_breaks_the_contract(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    proto = tmp_path / "proto"
    shutil.copytree(ROOT / "proto", proto, ignore=shutil.ignore_patterns("node_modules"))
    (proto / "node_modules").symlink_to(ROOT / "proto" / "node_modules")
    file = proto / "docferry" / "v1" / "envelope.proto"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    found = lint(proto)
    assert found.returncode != 0
    assert complaint in found.stdout + found.stderr
