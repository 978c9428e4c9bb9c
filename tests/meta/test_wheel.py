"""The wheel holds what an installation needs, and an installation needs nothing else."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.meta.tree import ROOT, SOURCE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_every_source_file_is_in_it(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"holdfast/{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "holdfast/py.typed" in wanted
    assert wanted <= packed
    assert not [name for name in packed if name.startswith(("tests", "tools", "bench"))]


@pytest.mark.slow
def test_it_works_without_the_development_tools(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    run = tmp_path / "venv" / "bin"
    subprocess.run([run / "python", "-m", "pip", "install", "-q", str(wheel)], check=True)
    subprocess.run([run / "python", "-c", "import holdfast"], cwd=tmp_path, check=True)
    version = subprocess.run(
        [run / "holdfast", "--version"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert version.stdout.startswith("holdfast, version ")
