"""Virtual environments for peers, made once below `.bench` and used again.

Owns the installation. A peer that cannot be installed is an error with a reason, which the
benchmark prints in the place of its figure.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".bench"
_PATIENCE_S = 300


class NotInstalled(Exception):
    """A peer, or what it needs, cannot be had here."""


def install(name: str, requirements: Sequence[str]) -> Path:
    """The directory of programs of an environment that holds these requirements."""
    digest = hashlib.sha256(repr((sys.version, requirements)).encode()).hexdigest()[:12]
    place = CACHE / name
    done = place / f".{digest}"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        try:
            venv.create(place, with_pip=True)
            _pip(place, requirements)
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(place, ignore_errors=True)
            raise NotInstalled(f"{name}: {_reason(error)}") from error
        done.touch()
    return place / "bin"


def _pip(place: Path, requirements: Sequence[str]) -> None:
    subprocess.run(
        [place / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements],
        check=True,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
    )


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = f"{error.stderr or ''}".strip().splitlines()
        return said[-1] if said else str(error)
    return str(error)
