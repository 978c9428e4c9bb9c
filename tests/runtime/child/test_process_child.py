"""A process child: every way a task can end, and what the neighbours notice of it."""

from __future__ import annotations

import json
import os
import signal
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from holdfast.core.outcome import (
    AbortAsked,
    Failed,
    RetryAsked,
    Returned,
    SnoozeAsked,
    TimedOut,
)
from holdfast.runtime.wire import messages as wire
from holdfast.runtime.wire.messages import EXIT_CUT_OFF, EXIT_ENDED
from tests.support.nursery import Kid, Nursery, job

# Values.


def test_a_value_comes_back_as_json(kid: Kid) -> None:
    assert kid.do("add", 1).result == "3"
    assert kid.do("give_back", {"a": [1, None, "é"]}).result == '{"a":[1,null,"é"]}'
    outcome = kid.do("noop")
    assert (outcome.kind, outcome.result) == (Returned, "null")


def test_task_result_ok_is_its_value(kid: Kid) -> None:
    outcome = kid.do("result_ok")
    assert (outcome.kind, outcome.result) == (Returned, "7")


@pytest.mark.parametrize(("code", "listed"), [("RATE_LIMITED", True), ("OTHER", False)])
def test_task_result_err_is_a_failure_with_the_authors_code(
    kid: Kid, code: str, listed: bool
) -> None:
    outcome = kid.do("result_err", code, {"sku": 7})
    error = outcome.error
    assert (outcome.kind, outcome.listed) == (Failed, listed)
    assert (error.error_code, error.message, error.data) == (code, "no luck", {"sku": 7})


@pytest.mark.parametrize(
    ("task", "args", "code"),
    [
        ("unserialisable", (), "RESULT_NOT_SERIALISABLE"),
        ("give_back", ("x" * 9_990,), "RESULT_TOO_LARGE"),
        ("wrong_result", (), "RESULT_INVALID"),
        ("result_odd_err", (), "RESULT_NOT_SERIALISABLE"),
        ("add", ("text",), "ARGUMENTS_INVALID"),
        ("add", (1, 2, 3), "ARGUMENTS_INVALID"),
        ("noop", (1,), "ARGUMENTS_INVALID"),
    ],
)
def test_a_broken_contract_is_a_failure_with_a_code_of_ours(
    kid: Kid, task: str, args: tuple[Any, ...], code: str
) -> None:
    if task == "give_back":
        args = (["x" * 4_000, "y" * 6_100],)
    outcome = kid.do(task, *args)
    assert (outcome.kind, outcome.error.error_code) == (Failed, code)
    assert not outcome.listed


# Exceptions.


@pytest.mark.parametrize(
    ("kind", "exception", "code", "listed"),
    [
        ("value", "builtins.ValueError", "UNHANDLED_EXCEPTION", True),
        ("key", "builtins.KeyError", "UNHANDLED_EXCEPTION", False),
        ("unicode", "builtins.UnicodeError", "UNHANDLED_EXCEPTION", False),
        ("stubborn", "tests.runtime.apps.plain.Stubborn", "UNHANDLED_EXCEPTION", False),
        ("exit", "builtins.SystemExit", "TASK_EXITED", False),
        ("interrupt", "builtins.KeyboardInterrupt", "KEYBOARD_INTERRUPT", False),
        ("generator_exit", "builtins.GeneratorExit", "UNHANDLED_EXCEPTION", False),
        ("base", "builtins.BaseException", "UNHANDLED_EXCEPTION", False),
        ("stop", "builtins.StopIteration", "UNHANDLED_EXCEPTION", False),
    ],
)
def test_whatever_is_raised_is_a_failure(
    kid: Kid, kind: str, exception: str, code: str, listed: bool
) -> None:
    outcome = kid.do("fail", kind)
    error = outcome.error
    assert outcome.kind is Failed
    assert (error.exception, error.error_code, outcome.listed) == (exception, code, listed)
    assert kid.do("add", 1).result == "3", "the child lives on"


def test_a_traceback_begins_with_the_users_own_code(kid: Kid) -> None:
    error = kid.do("fail", "value").error
    assert error.message == "wrong value"
    assert error.traceback is not None
    lines = error.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "apps/plain.py" in lines[1]
    assert "holdfast/runtime" not in error.traceback


def test_a_cause_is_kept(kid: Kid) -> None:
    error = kid.do("fail_with_cause").error
    assert error.causes == ("KeyError: 'x'",)
    assert "direct cause" in (error.traceback or "")


def test_sys_exit_is_a_failure(kid: Kid) -> None:
    assert kid.do("exit", 3).error.error_code == "TASK_EXITED"
    assert kid.do("add", 1).result == "3"


def test_signals_of_the_code_itself(kid: Kid) -> None:
    outcome = kid.do("retry_later", 1.5)
    assert (outcome.kind, outcome.delay_us) == (RetryAsked, 1_500_000)
    assert outcome.error.error_code == "RETRY_LATER"
    outcome = kid.do("retry_later", None)
    assert (outcome.kind, outcome.delay_us) == (RetryAsked, None)
    outcome = kid.do("snooze", 60)
    assert (outcome.kind, outcome.delay_us) == (SnoozeAsked, 60_000_000)
    outcome = kid.do("abort")
    assert (outcome.kind, outcome.error.error_code) == (AbortAsked, "ABORTED")


# Death.


@pytest.mark.parametrize(
    ("how", "code", "number"),
    [("exit", 7, None), ("segfault", None, signal.SIGSEGV), ("kill", None, signal.SIGKILL)],
)
def test_a_death_is_told_with_what_had_begun(
    kid: Kid, how: str, code: int | None, number: int | None
) -> None:
    first, second, third = job("add", 1), job("die", how), job("add", 2)
    kid.say(wire.Run([first, second, third]))
    assert kid.outcomes(1)[first.slot].result == "3", "flushed before a task that may be long"
    died = kid.died()
    assert (died.exit_code, died.exit_signal, died.pid) == (code, number, kid.pid)
    assert [begun.slot for begun in kid.page.begun()] == [second.slot]


def test_a_task_that_closes_every_descriptor_ends_its_child(kid: Kid) -> None:
    order = kid.begin("close_everything")
    died = kid.died()
    assert died.exit_code == EXIT_CUT_OFF
    assert [begun.slot for begun in kid.page.begun()] == [order.slot]


def test_a_task_that_closes_low_descriptors_harms_only_itself(kid: Kid, tmp_path: Path) -> None:
    file = tmp_path / "file"
    first, second = job("close_low", str(file)), job("say", "hello")
    # The second comes in a message of its own, so the first has been told of before.
    assert kid.do_all([first])[0].result == '"done"'
    assert kid.do_all([second])[0].kind is Returned
    kid.until(lambda: kid.output(second) == b"hello\n")
    assert file.read_bytes() == b"into the void\n", "its own words, and nothing of ours"


def test_a_forked_process_that_returns_does_not_become_a_second_child(kid: Kid) -> None:
    outcome = kid.do("fork_and_return")
    assert outcome.result == '"child"'
    assert kid.do("add", 1).result == "3"
    assert kid.heard(wire.Done) == []


def test_what_a_child_leaves_behind_is_killed_with_it(plain: Nursery) -> None:
    kid = plain.fork()
    grandchild = int(kid.do("leave_grandchild").result)
    os.kill(grandchild, 0)
    kid.say(wire.Leave())
    assert kid.died().exit_code == 0
    kid.until(lambda: not _is_alive(grandchild))


def _is_alive(pid: int) -> bool:
    try:
        # A zombie that nobody reaps in this container counts as gone.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# Output.


def test_output_belongs_to_its_task(kid: Kid) -> None:
    orders = [job("say", f"I am {number}") for number in range(50)]
    kid.do_all(orders)
    for number, order in enumerate(orders):
        assert kid.output(order) == f"I am {number}\n".encode()


def test_output_is_caught_at_the_descriptors(kid: Kid) -> None:
    order = job("say_in_all_ways")
    kid.do_all([order])
    text = kid.output(order).decode()
    for way in ("print", "stderr", "buffer", "descriptor", "subprocess", "C"):
        assert f"by {way}\n" in text
    assert "INFO somebody: by logging\n" in text
    assert text.endswith("no end of line")


def test_output_that_is_not_wanted_belongs_to_nobody(kid: Kid) -> None:
    loud, quiet, again = job("say", "loud"), job("whisper"), job("say", "again")
    kid.do_all([loud, quiet, again])
    assert kid.output(quiet) == b""
    assert kid.output(loud) == b"loud\n"
    assert kid.output(again) == b"again\n"
    assert b"not for the log\n" in kid.output(0)


def test_much_output_stops_nobody(kid: Kid) -> None:
    order = job("say", "x" * 9_999, 1_000)
    kid.do_all([order])
    assert len(kid.output(order)) == 10_000_000


def test_output_comes_while_the_task_runs(kid: Kid) -> None:
    order = job("stream", 3)
    assert kid.do_all([order])[0].result == "3"
    notes = [note for note in kid.heard(wire.Note) if note.slot == order.slot]
    assert "".join(note.output or "" for note in notes) == "line 0\nline 1\nline 2\nbytes\n3\n"


def test_a_task_that_is_not_known_here_is_put_off(kid: Kid) -> None:
    first, stranger = job("add", 1), job("add", 1, version=9)
    outcomes = kid.do_all([first, stranger, job("add", 2)])
    assert [outcome.kind for outcome in outcomes] == [Returned, SnoozeAsked, Returned]
    assert outcomes[1].delay_us == 10_000_000


# The window.


def test_what_has_not_begun_can_be_withdrawn(kid: Kid) -> None:
    running = kid.begin("wait_for_cancel")
    waiting = [job("add", number) for number in range(3)]
    kid.say(wire.Run(waiting))
    kid.say(wire.Withdraw([running.slot, waiting[0].slot, waiting[2].slot]))
    assert kid.hear(wire.Withdrawn).slots == [waiting[0].slot, waiting[2].slot]
    kid.say(wire.Cancel(running.slot, "cancel"))
    found = kid.outcomes(2)
    assert found[running.slot].result == '"noticed"'
    assert found[waiting[1].slot].result == "3"


def test_a_finished_task_does_not_wait_for_the_next(kid: Kid) -> None:
    first, second = job("add", 1), job("wait_for_cancel")
    kid.say(wire.Run([first, second]))
    assert set(kid.outcomes(1, seconds=5)) == {first.slot}
    kid.until_begun(second)
    kid.say(wire.Cancel(second.slot, "cancel"))
    kid.outcomes(1)


def test_short_tasks_share_a_message(kid: Kid) -> None:
    kid.do("noop")
    orders = [job("noop") for _ in range(200)]
    kid.say(wire.Run(orders))
    messages, found = 0, 0
    while found < len(orders):
        found += len(kid.hear(wire.Done).reports)
        messages += 1
    assert messages < 50


def test_leave_finishes_what_runs_and_gives_back_the_rest(kid: Kid) -> None:
    running = kid.begin("sleep", 0.1)
    waiting = job("add", 1)
    kid.say(wire.Run([waiting]), wire.Leave())
    assert kid.hear(wire.Withdrawn).slots == [waiting.slot]
    assert kid.outcomes(1)[running.slot].result == '"slept"'
    assert kid.died().exit_code == 0


# Ending code.


def test_a_task_that_is_ended_runs_its_finally_blocks(kid: Kid, tmp_path: Path) -> None:
    before, order, after = (
        job("add", 1),
        job("sleep_and_clean_up", str(tmp_path / "x")),
        job("noop"),
    )
    kid.say(wire.Run([before, order, after]))
    # Begun is not yet inside the block.
    kid.until((tmp_path / "x").exists)
    kid.end(order)
    found = kid.outcomes(2)
    assert found[before.slot].kind is Returned
    assert found[order.slot].kind is TimedOut
    assert kid.died().exit_code == EXIT_ENDED
    assert (tmp_path / "x").read_text() == "EndRun"
    assert kid.output(order) == b"cleaned up\n"
    assert kid.page.begun() == []


def test_a_task_that_is_ended_may_still_return(kid: Kid, tmp_path: Path) -> None:
    order = kid.begin("refuse_to_end", str(tmp_path / "x"))
    kid.until((tmp_path / "x").exists)
    kid.end(order)
    assert kid.outcomes(1)[order.slot].result == '"survived"'
    assert kid.died().exit_code == EXIT_ENDED


def test_a_signal_for_another_task_is_ignored(kid: Kid) -> None:
    order = kid.begin("wait_for_cancel")
    kid.page.ask_to_end(order.slot - 1, "timeout")
    os.kill(kid.pid, signal.SIGTERM)
    os.kill(kid.pid, signal.SIGINT)
    os.kill(kid.pid, signal.SIGHUP)
    kid.say(wire.Cancel(order.slot, "cancel"))
    assert kid.outcomes(1)[order.slot].result == '"noticed"'
    assert kid.do("add", 1).result == "3"


def test_an_end_that_comes_before_the_code_is_not_lost(plain: Nursery) -> None:
    for _ in range(20):
        kid = plain.fork()
        order = job("sleep", 60)
        kid.say(wire.Run([order]))
        kid.end(order)
        assert kid.outcomes(1, seconds=10)[order.slot].kind is TimedOut
        assert kid.died().exit_code == EXIT_ENDED


def test_a_task_cannot_keep_the_next_from_being_ended(kid: Kid) -> None:
    kid.do("take_sigterm")
    order = kid.begin("sleep", 60)
    kid.end(order)
    assert kid.outcomes(1)[order.slot].kind is TimedOut


def test_a_task_that_blocks_signals_is_killed(kid: Kid) -> None:
    order = kid.begin("block_signals", 60)
    kid.end(order)
    os.killpg(kid.pid, signal.SIGKILL)
    assert kid.died().exit_signal == signal.SIGKILL
    assert [begun.slot for begun in kid.page.begun()] == [order.slot]


# What is known about a run.


def test_the_stack_of_a_running_task(kid: Kid) -> None:
    order = kid.begin("sleep", 60)
    kid.until(lambda: "time.sleep(seconds)" in _stack(kid, order.slot))
    text = _stack(kid, order.slot)
    assert text.lstrip().startswith('File "')
    assert "apps/plain.py" in text.splitlines()[0]
    assert _stack(kid, order.slot + 1) == ""
    kid.end(order)


def _stack(kid: Kid, slot: int) -> str:
    kid.say(wire.Stack(1, slot))
    return kid.hear(wire.Stacked).text


def test_a_task_knows_who_it_is(kid: Kid) -> None:
    order = job("who_am_i", attempt=3, queue="images", task_options='{"timeout":60}')
    before = datetime.now().astimezone()
    told = json.loads(kid.do_all([order])[0].result)
    assert told["id"].replace("-", "") == order.id.hex()
    assert (told["attempt"], told["queue"], told["name"]) == (3, "images", "who_am_i")
    left = datetime.fromisoformat(told["deadline"]) - before
    assert 59 < left.total_seconds() < 65
    assert told["stdin"] == ""
    assert told["group"] is True
    told = json.loads(kid.do("who_am_i", task_options='{"timeout":null}').result)
    assert told["deadline"] is None


def test_notes_are_few_and_the_last_one_comes(kid: Kid) -> None:
    order = kid.begin("progress", 1_000, 0.3)
    began = monotonic()
    last = kid.hear(wire.Note, lambda note: '"done":1000' in (note.progress or ""))
    assert last.slot == order.slot
    assert monotonic() - began < 5
    kid.outcomes(1)
    notes = kid.heard(wire.Note)
    assert len(notes) < 50
    assert any(note.stage == "UPLOADING" and note.meta == '{"file":"a"}' for note in notes)
    assert any(note.heartbeat for note in notes)


def test_what_a_run_cost(kid: Kid) -> None:
    small = kid.do("spend", 1, 0.05)
    large = kid.do("spend", 100, 0.05)
    after = kid.do("spend", 1, 0.05)
    assert small.report.peak_memory_kb is not None
    assert large.report.peak_memory_kb is not None
    assert after.report.peak_memory_kb is not None
    assert large.report.peak_memory_kb > small.report.peak_memory_kb + 90_000
    assert after.report.peak_memory_kb < large.report.peak_memory_kb - 80_000
    for outcome in (small, large, after):
        assert outcome.report.cpu_time_us is not None
        assert 40_000 <= outcome.report.cpu_time_us <= 1_000_000
        assert outcome.report.run_us >= 40_000
