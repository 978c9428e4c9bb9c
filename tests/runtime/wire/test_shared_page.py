"""The page that a child shares with its supervisor: what code in the child can do to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from holdfast.runtime.wire import shared_page
from holdfast.runtime.wire.shared_page import Begun, SharedPage


@pytest.fixture
def descriptor() -> Iterator[int]:
    found = shared_page.create(2)
    yield found
    os.close(found)


@pytest.fixture
def plain_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Memory as it is where there is no call for it."""
    if sys.platform == "linux":
        monkeypatch.setattr(os, "memfd_create", _no_such_call)
    found = shared_page.create(2)
    yield found
    os.close(found)


def _no_such_call(name: str, flags: int) -> int:
    raise OSError("not implemented")


def test_its_size_cannot_be_changed(descriptor: int) -> None:
    if sys.platform == "linux":
        for size in (0, 1 << 20):
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, size)


@pytest.mark.parametrize("where", ["descriptor", "plain_file"])
def test_both_sides_see_the_same(where: str, request: pytest.FixtureRequest) -> None:
    memory: int = request.getfixturevalue(where)
    child, supervisor = SharedPage(memory, 2), SharedPage(memory, 2, guarded=True)
    child.begin(1, 7, 12345)
    child.turn(99)
    child.block(7)
    assert supervisor.begun() == [Begun(7, 12345)]
    assert supervisor.loop() == (99, 7)
    supervisor.ask_to_end(7, "timeout")
    assert child.asked_to_end() == (7, "timeout")
    child.end(1)
    assert supervisor.begun() == []
    for page in (child, supervisor):
        page.close()


def test_a_file_that_is_cut_off_harms_only_who_cut_it(plain_file: int) -> None:
    supervisor = SharedPage(plain_file, 2, guarded=True)
    os.ftruncate(plain_file, 0)
    assert supervisor.begun() == []
    supervisor.ask_to_end(3, "cancel")
    supervisor.close()
