"""The three kinds of children: what each promises, and who suffers when one is replaced."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast import ErrorCode, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.deadline import until
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

pytestmark = pytest.mark.mostly("sqlite")

KILL_GRACE = 0.5


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    return make_site("tests.e2e.programs.executors")


@pytest.fixture(scope="module", autouse=True)
def worker(site: Site) -> WorkerProcess:
    return site.worker("-c", "2", "--lease", "5", "--kill-grace", str(KILL_GRACE)).ready()


def test_each_kind_has_children_of_its_own(site: Site) -> None:
    process, thread, loop = (site.send(kind).get(20) for kind in ("process", "thread", "async"))
    assert len({process[0], thread[0], loop[0]}) == 3
    assert [process[1], thread[1], loop[1]] == [True, False, True]


def test_two_hundred_coroutines_at_once_in_one_child(site: Site) -> None:
    handles = site.module.together.send_many([(number,) for number in range(200)])
    until(lambda: site.ledger.count("begun", "together") == 200, within=20)
    assert len({line.pid for line in site.ledger.lines("begun", "together")}) == 1
    site.ledger.open_gate("together")
    assert [handle.get(20) for handle in handles] == list(range(200))


def test_threads_run_side_by_side(site: Site) -> None:
    names = [f"side-{number}" for number in range(8)]
    handles = [site.send("side-by-side", name) for name in names]
    site.begun(*names)
    site.ledger.open_gate(*names)
    assert [handle.get(20) for handle in handles] == names


def test_a_blocking_coroutine_costs_its_neighbours_no_time(
    site: Site, worker: WorkerProcess
) -> None:
    blocking = site.send("blocks-for", 1.6)
    site.begun("blocks-for")
    neighbours = [site.send("hurried", f"hurried-{n}") for n in range(3)]
    slow = site.send("slow", "slow-itself")
    site.begun(*(f"hurried-{n}" for n in range(3)), "slow-itself")
    site.ledger.open_gate("blocks-for")
    assert blocking.wait(20) is TaskStatus.COMPLETED
    assert [handle.get(20) for handle in neighbours] == [f"hurried-{n}" for n in range(3)]
    until(lambda: "s by blocks-for " in worker.said, within=2, what="the blocking task to be named")
    # Whoever needs more than its own time is told that not all of it was its own.
    assert slow.wait(20) is TaskStatus.FAILED
    assert re.search(
        r"timeout of 1\.5 s; for \d\.\d s of that .* was blocked by blocks-for ",
        slow.info().failed_reason or "",
    )


def test_who_stops_the_loop_stops_nobody_else(site: Site) -> None:
    neighbour = site.send("patient", "undisturbed")
    site.begun("undisturbed")
    assert site.send("stops-the-loop").wait(20) is TaskStatus.COMPLETED
    site.ledger.open_gate("undisturbed")
    assert neighbour.wait(20) is TaskStatus.COMPLETED
    assert only_attempt(neighbour).outcome is AttemptOutcome.COMPLETED


def test_a_blocking_coroutine_delays_only_its_own_child(site: Site) -> None:
    handle = site.send("blocking", "blocking")
    site.begun("blocking")
    others = [site.send("process"), site.send("thread")]
    assert set(site.app.wait(others, 20)) == {TaskStatus.COMPLETED}
    assert handle.status() is TaskStatus.RUNNING
    site.ledger.open_gate("blocking")
    assert handle.wait(20) is TaskStatus.COMPLETED


@pytest.mark.parametrize("name", ["limited", "limited-thread"])
def test_a_timeout_unwinds_the_code(site: Site, name: str) -> None:
    handle = site.send(name, name)
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT
    assert site.ledger.count("finally", name) == 1


@pytest.mark.parametrize("name", ["blocking-limited", "swallowing-limited"])
def test_a_coroutine_that_does_not_yield_costs_its_neighbours_nothing(
    site: Site, name: str
) -> None:
    neighbour = site.send("patient", f"beside-{name}")
    site.begun(f"beside-{name}")
    handle = site.send(name, name)
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT
    # Its child was replaced; the neighbour runs again in the next one, at no cost.
    until(lambda: site.ledger.count("begun", f"beside-{name}") == 2)
    site.ledger.open_gate(f"beside-{name}")
    assert neighbour.get(20) == 2
    info = neighbour.info()
    assert (info.retry_count, info.crash_count) == (0, 0)
    assert [a.outcome for a in neighbour.attempts()] == [
        AttemptOutcome.INTERRUPTED,
        AttemptOutcome.COMPLETED,
    ]


def test_a_thread_that_is_stuck_in_c_costs_its_neighbours_nothing(site: Site) -> None:
    neighbour = site.send("side-by-side", "beside-stuck")
    site.begun("beside-stuck")
    handle = site.send("stuck-thread", "stuck")
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT
    site.ledger.open_gate("beside-stuck")
    assert neighbour.get(20) == "beside-stuck"
    info = neighbour.info()
    assert (info.retry_count, info.crash_count) == (0, 0)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("raise", ErrorCode.UNHANDLED_EXCEPTION),
        ("exit", ErrorCode.TASK_EXITED),
        ("interrupt", ErrorCode.KEYBOARD_INTERRUPT),
        ("cancel", ErrorCode.UNHANDLED_EXCEPTION),
    ],
)
@pytest.mark.parametrize("name", ["fails", "afails"])
def test_failures(site: Site, name: str, how: str, code: ErrorCode) -> None:
    handle = site.send(name, how)
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == code
    assert only_attempt(handle).outcome is AttemptOutcome.FAILED


@pytest.mark.parametrize("how", ["later", "snooze"])
@pytest.mark.parametrize("name", ["fails", "afails"])
def test_signals(site: Site, name: str, how: str) -> None:
    handle = site.send(name, how)
    assert handle.get(20) == how
    assert handle.info().attempt == 2


@pytest.mark.parametrize("name", ["prints", "aprints"])
def test_output_is_told_apart(site: Site, name: str) -> None:
    words = [f"word{number}" for number in range(5)]
    handles = [site.send(name, word) for word in words]
    site.app.wait(handles, 20)
    for word, handle in zip(words, handles, strict=True):
        assert site.printed(handle).decode().split() == [word] * 20


def test_an_async_generator_streams_its_output(site: Site) -> None:
    handle = site.send("astream")
    handle.get(20)
    assert handle.output() == "line 0\nline 1\nline 2\n"


@pytest.mark.parametrize(
    ("crash", "args", "exit_code"), [("crash-thread", ("now",), 5), ("crash-async", (), 6)]
)
def test_the_death_of_a_shared_child(
    site: Site, crash: str, args: tuple[Any, ...], exit_code: int
) -> None:
    site.ledger.open_gate("now")
    handle = site.send(crash, *args)
    assert handle.wait(20) is TaskStatus.FAILED
    attempt = only_attempt(handle)
    assert (attempt.outcome, attempt.exit_code) == (AttemptOutcome.WORKER_FAILURE, exit_code)


@pytest.mark.parametrize("crash", ["crash-async", "breaks-the-loop"])
def test_a_coroutine_that_takes_the_process_down_costs_its_neighbours_nothing(
    site: Site, crash: str
) -> None:
    names = [f"beside-{crash}-{number}" for number in range(3)]
    neighbours = [site.send("patient", name) for name in names]
    site.begun(*names)
    handle = site.send(crash)
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.WORKER_CRASHED
    until(lambda: all(site.ledger.count("begun", name) == 2 for name in names))
    site.ledger.open_gate(*names)
    for neighbour in neighbours:
        # At least: a start that its child did not live to begin is one more attempt, and free, too.
        assert neighbour.get(20) >= 2
        info = neighbour.info()
        assert (info.retry_count, info.crash_count) == (0, 0)
        assert neighbour.attempts()[0].outcome is AttemptOutcome.INTERRUPTED


def test_a_loop_inside_the_loop_leaves_that_to_the_others(site: Site) -> None:
    neighbour = site.send("patient", "beside-a-loop")
    site.begun("beside-a-loop")
    assert site.send("runs-a-loop-inside").get(20) == 2
    later = site.send("patient", "after-a-loop")
    site.ledger.open_gate("beside-a-loop", "after-a-loop")
    assert [neighbour.get(20), later.get(20)] == [1, 1]


@pytest.mark.parametrize("kind", ["process", "thread", "async"])
def test_a_process_that_code_forks_ends_where_the_code_does(site: Site, kind: str) -> None:
    name = f"forked-{kind}"
    copy = site.send(f"forks-{kind}", name).get(20)
    until(lambda: site.ledger.count("forked", name) == 2)
    until(lambda: not alive(copy), what="the copy to have ended")
    assert site.ledger.count("hook", name) == 1


@pytest.mark.parametrize("suffix", ["", "-thread", "-async"])
def test_a_result_whose_encoding_exits(site: Site, suffix: str) -> None:
    handle = site.send(f"returns-a-trap{suffix}")
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_EXITED
    assert only_attempt(handle).outcome is AttemptOutcome.FAILED
