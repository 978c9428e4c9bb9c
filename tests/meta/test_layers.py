"""Imports point down only, and no import is excused."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.meta.tree import ROOT

LINT = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]


PACKAGES = (
    "core",
    "store",
    "store/postgres",
    "store/sqlite",
    "client",
    "runtime",
    "runtime/supervisor",
    "runtime/child",
    "cli",
    "cli/bulk_action",
    "cli/commands",
    *(
        f"cli/commands/{n}"
        for n in (
            "dead_letters",
            "doctor",
            "queues",
            "routes",
            "schedules",
            "stats",
            "tasks",
            "top",
            "web",
            "worker",
            "workers",
            "workflows",
        )
    ),
    "cli/completion",
    "cli/limit_options",
    "cli/place",
    "cli/render",
    "cli/selection",
    "cli/session",
    "cli/top",
    "web",
)
"""Those that the contracts name, modules among them."""


def test_the_layers_hold() -> None:
    answer = subprocess.run(LINT, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout


def test_nothing_is_excused() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    for contract in configured["contracts"]:
        assert "ignore_imports" not in contract, contract["name"]
        assert "exhaustive_ignores" not in contract, contract["name"]


def test_an_import_upwards_is_seen(tmp_path: Path) -> None:
    """The contract really covers what it names: the store may not import the client."""
    for layer in PACKAGES:
        (tmp_path / "holdfast" / layer).mkdir(parents=True)
        (tmp_path / "holdfast" / layer / "__init__.py").touch()
    (tmp_path / "holdfast" / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for importer, imported in (("store", "client"), ("client", "runtime"), ("core", "store")):
        bad = tmp_path / "holdfast" / importer / "bad.py"
        bad.write_text(f"import holdfast.{imported}\n")
        answer = subprocess.run(
            LINT,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 1, answer.stdout + answer.stderr
        assert f"holdfast.{importer}.bad -> holdfast.{imported}" in answer.stdout
        bad.unlink()
