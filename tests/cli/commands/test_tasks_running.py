"""`tasks log` and `tasks stack`: what running code says, and where it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import UUID

import pytest

from holdfast.core.records import ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import evidence, stack_requests
from tests.cli.conftest import Operator, Said
from tests.support.deadline import until
from tests.support.stores import Lab


def text(id: bytes) -> str:
    return str(UUID(bytes=id))


def prints(lab: Lab, task: ClaimedTask, *pieces: bytes, attempt: int = 1, first: int = 0) -> None:
    parts = [
        evidence.LogPart(task.key, task.token, attempt, first + place, data)
        for place, data in enumerate(pieces)
    ]
    assert len(lab.run(evidence.append_logs(parts))) == len(parts)


def test_a_log(operator: Operator, lab: Lab) -> None:
    task = lab.running()
    # A character may be cut in two by whoever read the pipe.
    prints(lab, task, b"gr\xc3", b"\xbc\xc3\x9fe\n", b"\x1b[31mred\xff\r\n\ttab, no end")
    said = operator("tasks", "log", text(task.id))
    assert said.out == "grüße\n\\x1b[31mred\N{REPLACEMENT CHARACTER}\\r\n\ttab, no end\n"
    assert said.err == ""


def test_a_raw_log(operator: Operator, lab: Lab) -> None:
    task = lab.running()
    prints(lab, task, b"\x1b[31mred", b"\x1b[0m")
    assert operator("tasks", "log", text(task.id), "--raw").out == "\x1b[31mred\x1b[0m"


def test_attempts_are_told_apart(operator: Operator, lab: Lab) -> None:
    task = lab.running()
    prints(lab, task, b"first")
    lab.fail(task)
    operator("tasks", "resubmit", text(task.id))
    again = lab.run_again(task.id)
    prints(lab, again, b"second\n", attempt=2)
    name = text(task.id)
    assert operator("tasks", "log", name).out == (
        "==> attempt 1 <==\nfirst\n==> attempt 2 <==\nsecond\n"
    )
    assert operator("tasks", "log", name, "--attempt", "2").out == "second\n"
    assert operator("tasks", "log", name, "--raw").out == "firstsecond\n"
    assert operator("tasks", "log", name, "--json").json == {
        "id": name,
        "attempts": [{"attempt": 1, "text": "first"}, {"attempt": 2, "text": "second\n"}],
    }
    said = operator("tasks", "log", name, "--attempt", "3", code=1)
    assert "has been started 2 times: there is no attempt 3" in said.err


def test_silence(operator: Operator, lab: Lab) -> None:
    waits, runs = lab.send(queue_name="w"), lab.running()
    assert "has not been started: it is PENDING" in operator("tasks", "log", text(waits)).err
    assert "printed nothing" in operator("tasks", "log", text(runs.id)).err


def test_following_a_log(operator: Operator, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    task = lab.running()
    prints(lab, task, b"one\n")

    def ends() -> None:
        prints(lab, task, b"three\n", first=2)
        lab.complete(task)

    script: list[Callable[[], None]] = [lambda: prints(lab, task, b"two\n", first=1), ends]
    monkeypatch.setattr("holdfast.cli.render.task_log.sleep", lambda seconds: script.pop(0)())
    said = operator("tasks", "log", "--follow", text(task.id))
    assert said.out == "==> attempt 1 <==\none\ntwo\nthree\n"
    assert script == []


def test_following_ends_with_the_attempt(
    operator: Operator, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = lab.running()
    prints(lab, task, b"one\n")
    lab.fail(task)
    operator("tasks", "resubmit", text(task.id))
    lab.run_again(task.id)
    assert operator("tasks", "log", "-f", "--attempt", "1", text(task.id)).out == "one\n"

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.render.task_log.sleep", interrupted)
    operator("tasks", "log", "-f", text(task.id), code=130)


def test_a_stack(operator: Operator, lab: Lab) -> None:
    task = lab.running()

    def answer() -> None:
        until(lambda: lab.run(stack_requests.stacks_asked([task.id])))
        lab.run(stack_requests.answer_stack(task.id, 'File "a.py", line 1\n  sleep()\x1b\n'))

    worker = threading.Thread(target=answer)
    worker.start()
    said = operator("tasks", "stack", text(task.id))
    worker.join()
    assert said.out == 'File "a.py", line 1\n  sleep()\\x1b\n'
    assert lab.run(stack_requests.stacks_asked([task.id])) == []


def test_a_worker_that_does_not_answer(operator: Operator, lab: Lab) -> None:
    task = lab.running()
    said = operator("tasks", "stack", text(task.id), "--timeout", "0.1", code=1)
    assert "worker worker-1 on host-1 did not answer within 0.1 s" in said.err
    assert lab.run(stack_requests.stacks_asked([task.id])) == []


@pytest.mark.parametrize("timeout", ["nan", "inf", "-1", "soon"])
def test_a_timeout_that_is_none(operator: Operator, lab: Lab, timeout: str) -> None:
    said = operator("tasks", "stack", text(lab.running().id), "--timeout", timeout, code=2)
    assert "Invalid value for '--timeout'" in said.err


@pytest.mark.parametrize("status", [s for s in TaskStatus if s is not TaskStatus.RUNNING])
def test_only_running_code_has_a_stack(operator: Operator, lab: Lab, status: TaskStatus) -> None:
    task = text(lab.reach(status).id)
    said = operator("tasks", "stack", task, code=1)
    assert said.err == (
        f"holdfast tasks stack: task {task} is {status.value}: only running code has a stack\n"
    )


def test_following_the_ends_of_tasks(operator: Operator, lab: Lab) -> None:
    said: list[Said] = []
    following = threading.Thread(
        target=lambda: said.append(
            operator("tasks", "follow", "--status", "FAILED", "--limit", "1")
        )
    )
    following.start()
    # Whether it has looked yet cannot be seen: tasks fail until it has told of one.
    while following.is_alive():
        lab.fail(lab.running())
        following.join(0.2)
    (line,) = said[0].lines
    stamp, status, id, name, queue, _, reason = line.split("  ", 6)
    assert (stamp[0], status, name, queue) == ("2", "FAILED", "t", "q")
    assert len(id) == 36
    assert reason == "BOOM: it went wrong"


def test_following_with_a_filter_that_can_never_fit(operator: Operator) -> None:
    assert "no task ends as" in operator("tasks", "follow", "--status", "PENDING", code=2).err
