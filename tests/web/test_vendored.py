"""Vendored files are those that were recorded, with their licences."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.meta.tree import ROOT, SOURCE

FOLDERS = (SOURCE / "web/static/vendor", ROOT / "tests/web/vendor")
_ROW = re.compile(r"\| `([^`]+)` \| ([\w.-]+) \| [\d.]+ \| [\w.-]+ \| `([0-9a-f]{64})` \|")


@pytest.mark.parametrize("folder", FOLDERS, ids=["product", "tests"])
def test_each_file_has_its_recorded_hash_and_a_licence(folder: Path) -> None:
    recorded = {
        name: (package, digest)
        for name, package, digest in _ROW.findall((folder / "README.md").read_text())
    }
    kept = {
        path.name
        for path in folder.iterdir()
        if path.name != "README.md" and not path.name.endswith(".LICENSE")
    }
    assert kept == recorded.keys()
    licences = {path.name.removesuffix(".LICENSE") for path in folder.glob("*.LICENSE")}
    for name, (_, digest) in recorded.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        assert name.partition(".")[0] in licences
