from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import ConfigError
from holdfast.core.identity import IdSource, as_bytes, as_text, as_uuid, new_id, uuid7
from tests.core.quick import quick

TEN_BYTES = st.binary(min_size=10, max_size=10)


def clock(*times_ms: int) -> Callable[[], int]:
    times = iter(times_ms)
    return lambda: next(times) * 1_000_000


@quick
@given(st.integers(0, 2**48 - 1), TEN_BYTES)
def test_uuid7_has_the_layout_of_the_rfc(now_ms: int, random: bytes) -> None:
    value = UUID(bytes=uuid7(now_ms, random))
    assert value.version == 7
    assert value.variant == "specified in RFC 4122"
    assert value.int >> 80 == now_ms


def test_the_example_of_the_rfc() -> None:
    """RFC 9562, A.6: rand_a = 0xCC3, rand_b = 0x18C4DC0C0C07398F."""
    random = ((0xCC3 << 62) | 0x18C4DC0C0C07398F).to_bytes(10)
    assert as_text(uuid7(0x017F22E279B0, random)) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@quick
@given(st.lists(st.integers(0, 2**47), min_size=2, max_size=50))
def test_ids_increase_whatever_the_clock_does(times: list[int]) -> None:
    source = IdSource(clock(*times))
    made = [source() for _ in times]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(UUID(bytes=id).version == 7 for id in made)


def test_a_full_millisecond_borrows_the_next() -> None:
    source = IdSource(clock(5, 5, 5), lambda n: b"\xff" * n)
    made = [UUID(bytes=source()).int >> 80 for _ in range(3)]
    assert made[0] == 5
    assert made == sorted(made)
    assert made[1] == 6


def test_the_random_part_grows_by_a_random_step() -> None:
    source = IdSource(clock(5, 5), lambda n: (bytes(9) + b"\x09") * (n // 10))
    first, second = source(), source()
    assert int.from_bytes(second) - int.from_bytes(first) == 10


def test_threads_share_a_source() -> None:
    source = IdSource()
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: source(), range(2000)))
    assert len(set(made)) == 2000


def test_a_forked_child_draws_afresh() -> None:
    """Same clock, and the parent's lock held for ever: the child still makes its own ids."""
    source = IdSource(lambda: 10**15)
    source()
    reader, writer = os.pipe()
    with source._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover
            os.write(writer, source())
            os._exit(0)
    os.waitpid(child, 0)
    childs, ours = os.read(reader, 16), source()
    os.close(reader)
    os.close(writer)
    # The next id of one sequence lies within one random step of the last.
    assert abs(int.from_bytes(childs) - int.from_bytes(ours)) > 2**41


def test_text_and_back() -> None:
    id = new_id()
    assert as_text(id) == str(UUID(bytes=id))
    assert as_uuid(id) == UUID(bytes=id)
    for form in (id, UUID(bytes=id), as_text(id), as_text(id).upper(), id.hex()):
        assert as_bytes(form) == id


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "xyz",
        "{0197f3c2-5b1e-7d44-9a01-3c5e6f708192}",
        "urn:uuid:0197f3c2-5b1e-7d44-9a01-3c5e6f708192",
        "0197f3c25b1e-7d44-9a01-3c5e6f708192",
        "0197f3c2-5b1e-7d44-9a01-3c5e6f70819２",
        "0197f3c2-5b1e-7d44-9a01-3c5e6f708192\n",
        "0197f3c2_5b1e_7d44_9a01_3c5e6f708192",
        b"short",
        7,
        None,
    ],
)
def test_what_is_no_id_is_refused(bad: str) -> None:
    with pytest.raises(ConfigError, match="is not a task id: give a UUID"):
        as_bytes(bad)


def test_any_uuid_is_an_id() -> None:
    """Ids of callers need not be of version 7."""
    mine = uuid4()
    assert as_bytes(mine) == mine.bytes


def test_many_ids_are_distinct_and_increase_with_those_drawn_one_by_one() -> None:
    source = IdSource(lambda: 10**15)

    found = [source(), *source.many(1_000), source(), *source.many(0), *source.many(1)]

    assert len(found) == 1_003
    assert found == sorted(set(found))
    assert {UUID(bytes=id).version for id in found} == {7}


def test_many_ids_borrow_from_the_next_millisecond_when_this_one_is_full() -> None:
    source = IdSource(clock(5, 5), lambda n: b"\xff" * n)

    first, second = source.many(2)

    assert first < second
    assert UUID(bytes=second).int >> 80 == (UUID(bytes=first).int >> 80) + 1
