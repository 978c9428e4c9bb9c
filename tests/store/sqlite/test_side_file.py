"""Files beside a database, when somebody else has put something under their names."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from holdfast.core.errors import StoreError
from holdfast.store.op import Channel
from holdfast.store.sqlite import side_file
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file whose owner wants it to stay as it is."""
    folder = tmp_path / "elsewhere"
    folder.mkdir(mode=0o700)
    file = folder / "secret"
    file.write_text("secret")
    file.chmod(0o600)
    return file


def share(path: Path) -> None:
    """A database that a group may write: side files are to be opened for it."""
    path.touch()
    path.chmod(0o660)


@pytest.mark.parametrize("name", ["turn", "lock"])
def test_a_link_in_place_of_a_lock_file_is_not_followed(
    make_store: MakeStore, path: Path, victim: Path, name: str
) -> None:
    share(path)
    link = path.with_name(f"{path.name}-{name}")
    link.symlink_to(victim)
    with pytest.raises(StoreError, match=f"{link.name} is not a regular file.*remove it"):
        make_store().run(verbs.make())
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600
    link.unlink()
    make_store().run(verbs.make())


def test_a_link_to_nothing_makes_nothing(make_store: MakeStore, path: Path, tmp_path: Path) -> None:
    share(path)
    path.with_name(f"{path.name}-turn").symlink_to(tmp_path / "made")
    with pytest.raises(StoreError, match="not a regular file"):
        make_store().run(verbs.make())
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("kind", ["pipe", "directory", "socket"])
def test_what_is_no_file_is_refused(make_store: MakeStore, path: Path, kind: str) -> None:
    share(path)
    trap = path.with_name(f"{path.name}-turn")
    if kind == "pipe":
        os.mkfifo(trap, 0o666)
    elif kind == "directory":
        trap.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(trap))
    with pytest.raises(StoreError, match="not a regular file"):
        make_store().run(verbs.make())


def test_the_mode_of_a_lock_file_that_was_there_is_left_alone(
    make_store: MakeStore, path: Path
) -> None:
    share(path)
    there = path.with_name(f"{path.name}-turn")
    there.touch()
    there.chmod(0o640)
    make_store().run(verbs.make())
    assert stat.S_IMODE(there.stat().st_mode) == 0o640


def bell(store: SqliteStore) -> Path:
    return Path(f"{store.path}-bell")


def test_a_link_in_place_of_the_doorbell_is_not_followed(
    make_store: MakeStore, path: Path, victim: Path
) -> None:
    share(path)
    store = make_store()
    store.run(verbs.make())
    bell(store).symlink_to(victim.parent)
    with store.listen(Channel.READY) as hints:
        # It looks for itself, as where there is no doorbell.
        store.run(verbs.put("x"))
        assert hints.wait(5)
        assert list(victim.parent.iterdir()) == [victim]
    assert stat.S_IMODE(victim.parent.stat().st_mode) == 0o700


def test_a_link_in_place_of_a_bound_socket_is_not_followed(tmp_path: Path, victim: Path) -> None:
    link = tmp_path / "ready.1.00"
    link.symlink_to(victim)
    with pytest.raises(OSError, match="not the socket"):
        side_file.share_socket(str(link), 0o666)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600


def test_those_who_make_a_file_at_once_all_have_it(path: Path) -> None:
    share(path)
    found: list[int] = []

    def make() -> None:
        found.append(side_file.open_file(f"{path}-turn", str(path)))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({os.fstat(fd).st_ino for fd in found}) == 1
    for fd in found:
        os.close(fd)


@pytest.mark.parametrize("name", ["turn", "lock"])
def test_a_lock_file_of_a_stranger_is_not_used(
    make_store: MakeStore, path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(path)
    path.with_name(f"{path.name}-{name}").touch()
    monkeypatch.setattr(side_file, "is_trusted", lambda found, database, user: False)
    with pytest.raises(StoreError, match=f"-{name} belongs to user .* remove it"):
        make_store().run(verbs.make())


def status(mode: int, user: int, group: int) -> os.stat_result:
    return os.stat_result((mode, 1, 1, 1, user, group, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("database", "found", "trusted"),
    [
        (status(0o600, 5, 5), status(0o600, 5, 5), True),
        (status(0o600, 5, 5), status(0o600, 7, 7), True),
        (status(0o600, 5, 5), status(0o600, 0, 0), True),
        (status(0o600, 5, 5), status(0o666, 6, 5), False),
        (status(0o660, 5, 5), status(0o660, 6, 5), True),
        (status(0o660, 5, 5), status(0o660, 6, 6), False),
        (status(0o666, 5, 5), status(0o666, 6, 6), True),
    ],
)
def test_only_what_belongs_to_those_who_may_write_is_used(
    database: os.stat_result, found: os.stat_result, trusted: bool
) -> None:
    assert side_file.is_trusted(found, database, 7) is trusted
