"""A private PostgreSQL server for tests, which may be stopped, killed, frozen and restarted.

Owns one server on one temporary data directory, reachable by a Unix socket and by TCP on the
loopback address. It never touches a server that was there before, and leaves nothing running
and nothing on disk however the tests end (see `postgres_watchdog`). As root the server runs as
an unprivileged user, because PostgreSQL refuses root.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Literal, Self

import psycopg
from psycopg import sql

from tests.support import postgres_watchdog as watchdog
from tests.support.postgres_binaries import Binaries, NoPostgres, find

USER = "holdfast"
START_S = 60.0
STOP_S = 30.0
# Outside the range that systems hand to outgoing connections: a restarted server finds its
# port free again.
PORTS = range(20_000, 32_000)
LONGEST_SOCKET_DIRECTORY = 80
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

Mode = Literal["smart", "fast", "immediate"]


class PostgresServer:
    """One private server; use it as a context manager, or call `close()`.

        with PostgresServer() as server:
            url = server.create_database()
            server.kill()      # as a power cut would, but the disk survives
            server.start()     # the same data, the same port

    `fsync=False` is quicker and for tests of behaviour: what it committed survives `kill()`, but
    would not survive a crash of the machine.
    """

    def __init__(self, *, fsync: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self._fsync = fsync
        self._settings = dict(settings or {})
        self._account = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self.port = 0
        with ExitStack() as undo:
            self.directory = _directory(self._account)
            undo.callback(shutil.rmtree, self.directory, ignore_errors=True)
            self._binaries = self._usable(find())
            self._watchdog = self._watch()
            undo.callback(self.close)
            self._initdb()
            undo.pop_all()

    def __enter__(self) -> Self:
        if self._process is None:
            self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it is not running."""
        return None if self._process is None else self._process.pid

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> str:
        """What the server wrote to its log so far."""
        path = self.directory / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def url(self) -> str:
        """The URL of the server's first database, `postgres`."""
        return self.url_of("postgres")

    @property
    def conninfo(self) -> str:
        """Keyword form of `url`, over the Unix socket."""
        return f"host={self.directory} port={self.port} user={USER} dbname=postgres"

    def url_of(self, database: str, *, unix: bool = False) -> str:
        if unix:
            return f"postgresql://{USER}@/{database}?host={self.directory}&port={self.port}"
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server on its data, and return when it accepts connections."""
        if self._process is not None:
            raise RuntimeError("this PostgreSQL server is already running")
        tries = 1 if self.port else 5
        for left in reversed(range(tries)):
            self.port = self.port or _free_port()
            try:
                self._launch()
            except RuntimeError:
                # Somebody may have taken the port since we looked.
                if not left or "could not bind" not in self.log:
                    raise
                self.port = 0
            else:
                return

    def stop(self, mode: Mode = "fast") -> None:
        """Shut the server down; the data stay, and `start()` brings it back."""
        process = self._running()
        process.send_signal(SIGNALS[mode])
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"PostgreSQL did not stop ({mode}) in {STOP_S:.0f} s") from None
        self._ended()

    def kill(self) -> None:
        """SIGKILL the server and all its processes at once."""
        process = self._running()
        watchdog.kill_tree(process.pid)
        process.wait()
        self._ended()

    def freeze(self) -> None:
        """SIGSTOP every process of the server: connections stay open and nobody answers."""
        pid = self._running().pid
        watchdog.send(watchdog.tree(pid)[:1], signal.SIGSTOP)
        watchdog.send(watchdog.tree(pid), signal.SIGSTOP)

    def thaw(self) -> None:
        """Undo `freeze()`."""
        watchdog.send(watchdog.tree(self._running().pid), signal.SIGCONT)

    def restart(self, mode: Mode = "fast") -> None:
        self.stop(mode)
        self.start()

    def create_database(self, *, template: str | None = None) -> str:
        """Make a fresh database, empty or a copy of `template`, and return its URL."""
        name = f"test_{next(self._numbers)}"
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template or "template0")
            )
        )
        return self.url_of(name)

    def drop_database(self, url: str) -> None:
        """Drop a database made by `create_database`, whoever is still connected to it."""
        name = url.rpartition("/")[2]
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def close(self) -> None:
        """Stop the server if it runs, and erase its directory; closing twice is allowed."""
        if self._process is not None:
            self.kill()
        watchdog.erase(self.directory)
        if self._watchdog is not None:
            self._pipe.close()
            self._watchdog.wait()
            self._watchdog = None

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(statement)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("this PostgreSQL server is not running")
        return self._process

    def _ended(self) -> None:
        self._process = None
        self._tell(0)

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._watchdog is not None
        assert self._watchdog.stdin is not None
        return self._watchdog.stdin

    def _tell(self, pid: int) -> None:
        self._pipe.write(f"{pid}\n".encode())
        self._pipe.flush()

    def _watch(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, watchdog.__file__, str(self.directory), str(os.getpid())],
            stdin=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )

    def _usable(self, binaries: Binaries) -> Binaries:
        """These binaries, or a copy of them where the unprivileged user may not reach them."""
        try:
            self._as_account([binaries.program("postgres"), "--version"])
        except PermissionError:
            return binaries.copy_to(self.directory / "install")
        return binaries

    def _initdb(self) -> None:
        self._as_account(
            [
                self._binaries.program("initdb"),
                f"--pgdata={self.data}",
                f"--username={USER}",
                "--auth=trust",
                "--encoding=UTF8",
                # The locales of the machine are not ours to know, and differ between machines.
                "--no-locale",
                "--no-sync",
            ]
        )

    def _launch(self) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
            "max_connections": "200",
            "max_prepared_transactions": "5",
            "fsync": "on" if self._fsync else "off",
            "full_page_writes": "on" if self._fsync else "off",
            # Files of the data directory, which go with it after a kill.
            "dynamic_shared_memory_type": "mmap",
            "jit": "off",
            "timezone": "UTC",
            **self._settings,
        }
        command = [self._binaries.program("postgres"), "-D", str(self.data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=_environment(),
                start_new_session=True,
                user=self._account.uid,
                group=self._account.gid,
                extra_groups=self._account.groups,
            )
        self._tell(self._process.pid)
        self._await_ready(self._process)

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_S
        while not self._ready(process.pid):
            if process.poll() is not None:
                self._ended()
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log[-3000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"PostgreSQL was not ready in {START_S:.0f} s:\n{self.log}")
            time.sleep(0.01)

    def _ready(self, pid: int) -> bool:
        # The first line is the owner (a killed server leaves its file), the last its state.
        try:
            lines = (self.data / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return False
        return len(lines) > 1 and lines[0] == str(pid) and lines[-1] == "ready"

    def _as_account(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.directory,
            env=_environment(),
            check=False,
            user=self._account.uid,
            group=self._account.gid,
            extra_groups=self._account.groups,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout}")


def _environment() -> dict[str, str]:
    """Ours, without what would steer PostgreSQL's programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class _Account:
    """The user the server runs as: in the form `subprocess` takes, None meaning "as we are"."""

    uid: int | None = None
    gid: int | None = None

    @property
    def groups(self) -> list[int] | None:
        return None if self.uid is None else []


def _unprivileged() -> _Account:
    if os.geteuid() != 0:
        return _Account()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Account(entry.pw_uid, entry.pw_gid)
    raise NoPostgres(
        "PostgreSQL refuses to run as root, and there is no user `nobody` to run it as"
    )


def _directory(account: _Account) -> Path:
    """A new directory of the server's user, short enough to hold a Unix socket."""
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        directory = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=parent))
        if account.uid is not None and account.gid is not None:
            os.chown(directory, account.uid, account.gid)
        if len(str(directory)) <= LONGEST_SOCKET_DIRECTORY and _enters(account, directory):
            return directory
        directory.rmdir()
    raise NoPostgres("no temporary directory that PostgreSQL's user may enter; set TMPDIR")


def _enters(account: _Account, directory: Path) -> bool:
    try:
        subprocess.run(
            ["/bin/sh", "-c", ":"],
            cwd=directory,
            user=account.uid,
            group=account.gid,
            extra_groups=account.groups,
            check=True,
        )
    except PermissionError:
        return False
    return True


def _free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free TCP port found for PostgreSQL")
