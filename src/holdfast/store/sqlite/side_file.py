"""The files that we keep beside a database: two lock files, and the directory of the doorbell.

Owns their making and their opening. The directory of a database may be open to others who may
write there, and they may put anything under these names before we come: a symbolic link, a pipe,
another user's file. So nothing is followed; mode and group are set only on what was just made
here, by its descriptor; and what was there before must be of the right kind, and belong to
somebody who may write the database.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from holdfast.core.errors import StoreError

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_PATH = getattr(os, "O_PATH", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_TRIES = 5


class Distrusted(StoreError):
    """What was found under the name of a side file is not used."""


def mode_beside(database: str) -> int:
    """The mode of files beside a database: open exactly to those who may write it."""
    mode = Path(database).stat().st_mode
    return sum(0o6 << shift for shift in (6, 3, 0) if mode & (0o2 << shift)) | 0o600


def open_file(path: str, database: str) -> int:
    """The descriptor of a regular file, made if there is none; `OSError` if that cannot be."""
    for _ in range(_TRIES):
        try:
            return _make_file(path, database)
        except FileExistsError:
            pass
        try:
            # Not to block on a pipe that somebody put there.
            fd = os.open(path, os.O_RDWR | _NOFOLLOW | _NONBLOCK | _CLOEXEC)
        except FileNotFoundError:
            # Removed in this moment.
            continue
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):
                raise Distrusted(_no_file(path)) from None
            raise
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise Distrusted(_no_file(path))
            _check_owner(path, found, database)
        except BaseException:
            os.close(fd)
            raise
        return fd
    raise OSError(errno.EEXIST, "it comes and goes")


def _make_file(path: str, database: str) -> int:
    mode = mode_beside(database)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC, mode)
    _share(fd, database, mode)
    return fd


def open_folder(path: str, database: str) -> int:
    """The descriptor of a directory, made if there is none; `OSError` if that cannot be."""
    mode = mode_beside(database)
    # Whoever may write the database may also list and bind: rw becomes rwx.
    wanted = mode | (mode & 0o444) >> 2
    try:
        os.mkdir(path, wanted)  # noqa: PTH102 - as the rest here
    except FileExistsError:
        return look_into(path, database)
    fd = os.open(path, os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC)
    try:
        if hasattr(os, "geteuid") and os.fstat(fd).st_uid == os.geteuid():
            _share(fd, database, wanted)
    finally:
        os.close(fd)
    return look_into(path, database)


def look_into(path: str, database: str) -> int:
    """The descriptor of a directory that is there, through which names in it can be reached."""
    fd = os.open(path, (_PATH or os.O_RDONLY) | _DIRECTORY | _NOFOLLOW | _CLOEXEC)
    try:
        _check_owner(path, os.fstat(fd), database)
    except BaseException:
        os.close(fd)
        raise
    return fd


def share_socket(path: str, mode: int) -> None:
    """Give a socket that was just bound at this path its mode, and nothing else that is there."""
    if not _PATH:
        if os.chmod in os.supports_follow_symlinks:
            os.chmod(path, mode, follow_symlinks=False)  # noqa: PTH101 - Path cannot do this
        return
    fd = os.open(path, _PATH | _NOFOLLOW | _CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "it is not the socket that was bound", path)
        if stat.S_IMODE(found.st_mode) != mode:
            Path(f"/proc/self/fd/{fd}").chmod(mode)
    finally:
        os.close(fd)


def _share(fd: int, database: str, mode: int) -> None:
    """Make what we have just made as open as the database, whatever the umask was."""
    try:
        ours, theirs = os.fstat(fd), Path(database).stat()
        if stat.S_IMODE(ours.st_mode) != mode and hasattr(os, "fchmod"):
            os.fchmod(fd, mode)
        if ours.st_gid != theirs.st_gid and hasattr(os, "fchown"):
            os.fchown(fd, -1, theirs.st_gid)
    except OSError:
        pass


def _check_owner(path: str, found: os.stat_result, database: str) -> None:
    if hasattr(os, "geteuid") and not is_trusted(found, Path(database).stat(), os.geteuid()):
        raise Distrusted(
            f"{path} belongs to user {found.st_uid}, who may not write the database {database}, so "
            "it is not used: remove it, and see who may write to that directory"
        )


def is_trusted(found: os.stat_result, database: os.stat_result, user: int) -> bool:
    """Whether what was found belongs to somebody who may write the database, or to `user`."""
    if found.st_uid in (database.st_uid, user, 0) or database.st_mode & stat.S_IWOTH:
        return True
    return bool(database.st_mode & stat.S_IWGRP) and found.st_gid == database.st_gid


def _no_file(path: str) -> str:
    return (
        f"{path} is not a regular file, so it is not used (a symbolic link is not followed): "
        "remove it, and see who may write to that directory"
    )
