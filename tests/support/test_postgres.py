"""The launcher itself: crashes keep the data, and nothing outlives the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.support import postgres, postgres_binaries
from tests.support.deadline import until
from tests.support.postgres import PostgresServer
from tests.support.postgres_binaries import Binaries, NoPostgres

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One server for the tests that leave it running."""
    with PostgresServer() as server:
        yield server


def processes_in(directory: Path) -> list[psutil.Process]:
    """Every process whose command names the directory, or that works in it."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            where = process.cwd()
        except psutil.Error:
            continue
        if str(directory) in words or where.startswith(str(directory)):
            found.append(process)
    return found


def test_both_addresses_lead_to_one_server(server: PostgresServer) -> None:
    url = server.create_database()
    name = url.rpartition("/")[2]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE seen (by text)")
    with psycopg.connect(server.url_of(name, unix=True)) as connection:
        connection.execute("INSERT INTO seen VALUES ('socket')")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT by FROM seen").fetchall() == [("socket",)]
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)


@pytest.mark.parametrize("fsync", [True, False])
def test_what_was_committed_survives_a_kill(fsync: bool) -> None:
    with PostgresServer(fsync=fsync) as server:
        url = server.create_database()
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (n int)")
        for n in range(3):
            with psycopg.connect(url) as connection:
                connection.execute("INSERT INTO kept VALUES (%s)", [n])
            port = server.port
            server.kill()
            assert server.pid is None
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(url)
            server.start()
            assert server.port == port
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT n FROM kept ORDER BY n").fetchall() == [
                (0,),
                (1,),
                (2,),
            ]


def test_kill_takes_a_busy_backend_with_it(server: PostgresServer) -> None:
    connection = psycopg.connect(server.url, autocommit=True)
    backend = psutil.Process(connection.info.backend_pid)
    connection.pgconn.send_query(b"SELECT pg_sleep(600)")
    server.kill()
    assert not backend.is_running() or backend.status() == psutil.STATUS_ZOMBIE
    connection.close()
    server.start()


@pytest.mark.parametrize("mode", ["smart", "fast", "immediate"])
def test_restart_in_every_mode(server: PostgresServer, mode: postgres.Mode) -> None:
    url = server.create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept (n int)")
    server.restart(mode)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_a_frozen_server_is_silent_and_goes_on_after(server: PostgresServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        server.freeze()
        connection.pgconn.send_query(b"SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="timeout"):
            psycopg.connect(server.url, connect_timeout=2)
        assert connection.pgconn.is_busy()
        server.thaw()
        result = connection.pgconn.get_result()
        assert result is not None
        assert result.get_value(0, 0) == b"1"
        assert connection.pgconn.get_result() is None


def test_close_leaves_nothing() -> None:
    with PostgresServer(fsync=False) as server, psycopg.connect(server.url):
        server.close()
    assert not server.directory.exists()
    assert processes_in(server.directory) == []


def test_close_after_a_kill_frees_the_shared_memory() -> None:
    with PostgresServer(fsync=False) as server:
        line = (server.data / "postmaster.pid").read_text().splitlines()[6]
        segment = line.split()[1]
        server.kill()
    if sys.platform == "linux":
        table = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        assert segment not in [row.split()[1] for row in table]


CHILD = """
import os, sys, time
from tests.support.postgres import PostgresServer
server = PostgresServer(fsync=False)
server.start()
if sys.argv[1] == "frozen":
    server.freeze()
forked = os.fork() if sys.argv[1] == "forked" else None
if forked != 0:
    print(server.directory, forked or "", flush=True)
time.sleep(60)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("state", "number"),
    [
        ("running", signal.SIGKILL),
        ("running", signal.SIGINT),
        ("frozen", signal.SIGKILL),
        ("forked", signal.SIGKILL),
    ],
)
def test_nothing_outlives_tests_that_are_killed(state: str, number: signal.Signals) -> None:
    tests = subprocess.Popen(
        [sys.executable, "-c", CHILD, state],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert tests.stdout is not None
    place, *forked = tests.stdout.readline().split()
    directory = Path(place)
    assert processes_in(directory)
    tests.send_signal(number)
    tests.wait()
    until(lambda: not processes_in(directory))
    until(lambda: not directory.exists())
    for pid in forked:
        os.kill(int(pid), signal.SIGKILL)
    tests.stdout.close()


@pytest.mark.slow
def test_binaries_out_of_the_users_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a checkout below /root: the server's user may not enter that directory."""
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    elsewhere = postgres_binaries.find().copy_to(hidden)
    monkeypatch.setattr(postgres, "find", lambda: elsewhere)
    with PostgresServer(fsync=False) as server, psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        copied = (server.directory / "install").exists()
        assert copied == (os.geteuid() == 0)


def test_no_binaries_is_a_failure_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Iterator[Binaries]:
        return iter(())

    monkeypatch.delenv(postgres_binaries.VARIABLE, raising=False)
    monkeypatch.setattr(postgres_binaries, "_wheels", none)
    monkeypatch.setattr(postgres_binaries, "_system", none)
    with pytest.raises(NoPostgres, match=f"make check.*{postgres_binaries.VARIABLE}"):
        PostgresServer()


def test_the_chosen_directory_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binaries = postgres_binaries.find()
    monkeypatch.setenv(postgres_binaries.VARIABLE, str(binaries.root / binaries.bin))
    assert postgres_binaries.find().program("postgres") == binaries.program("postgres")
    monkeypatch.setenv(postgres_binaries.VARIABLE, str(tmp_path))
    with pytest.raises(NoPostgres, match="no initdb and postgres"):
        postgres_binaries.find()


def test_each_test_has_its_own_database(
    postgres_url: str, postgres_database: Callable[[], str]
) -> None:
    other = postgres_database()
    assert other != postgres_url
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE mine (n int)")
    with psycopg.connect(other) as connection:
        found = connection.execute("SELECT to_regclass('mine')").fetchone()
    assert found == (None,)
