from __future__ import annotations

from pathlib import Path

from holdfast.store.sqlite.turns import lock_holder
from tests.store.sqlite.conftest import Start


def test_who_holds_what_is_unknown_for_what_is_not_there(path: Path) -> None:
    assert lock_holder.of_flock(str(path)) is None
    assert lock_holder.of_write_lock(str(path)) is None
    assert not lock_holder.is_this_process(str(path))


def test_who_holds_a_turn(path: Path, start: Start) -> None:
    path.touch()
    child = start("hold_turn", path)
    assert child.hear() == "in"

    who = lock_holder.of_flock(f"{path}-lock")

    assert who is not None
    assert who.startswith(f"process {child.pid} (python")
    # The program, and not its arguments: these may be passwords.
    assert who.endswith("-m tests.store.sqlite.programs)")
    child.tell()
    assert child.hear() == "out"
    assert lock_holder.of_flock(f"{path}-lock") is None
