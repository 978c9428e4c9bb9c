"""The files of this repository, as the meta tests see them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
LEFT_OUT = {".git", ".venv", "__pycache__", "build", "dist"}


@cache
def files() -> tuple[Path, ...]:
    """Every file that is tracked or would be; of an unpacked release, every file."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found = {ROOT / name for name in listed.split("\0") if name}
    else:
        found = {
            path for path in ROOT.rglob("*") if not LEFT_OUT & set(path.relative_to(ROOT).parts)
        }
    return tuple(sorted(path for path in found if path.is_file()))


def python_files(*folders: str) -> Iterator[Path]:
    for path in files():
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders:
            yield path


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
