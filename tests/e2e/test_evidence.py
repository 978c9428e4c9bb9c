"""What running tasks show: progress, stages, output, stacks, cost; and what they keep."""

from __future__ import annotations

from functools import partial

import pytest

from holdfast import TaskStatus
from holdfast.client.info import Progress
from holdfast.core.status import AttemptOutcome
from holdfast.store.verbs import stack_requests
from holdfast.store.verbs.workers import list_workers, states
from tests.support.deadline import until
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("postgresql")


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    return make_site("tests.e2e.programs.evidence")


@pytest.fixture(scope="module", autouse=True)
def worker(site: Site) -> WorkerProcess:
    return site.worker("-c", "2", "--lease", "5").ready()


def test_progress_and_stage_are_live(site: Site) -> None:
    handle = site.send("progress", "progress")
    until(lambda: handle.progress() == Progress(3, 10, "resizing"), within=5)
    until(lambda: handle.info().stage, within=5)
    info = handle.info()
    assert info.status is TaskStatus.RUNNING
    assert (info.stage, info.meta) == ("UPLOADING", {"bytes": 7})
    assert info.celery_state == "UPLOADING"
    site.ledger.open_gate("progress")
    handle.wait(20)
    assert handle.progress() == Progress(10, 10, None)


def test_checkpoints_survive_a_crash(site: Site) -> None:
    handle = site.send("checkpoints")
    assert handle.get(20) == ["first in attempt 1", "second in attempt 1"]
    assert [line.data for line in site.ledger.lines("step", handle.id)] == ["first", "second"]
    assert handle.info().attempt == 2


def test_a_generator_streams_its_output(site: Site) -> None:
    handle = site.send("lines", "lines")
    until(lambda: handle.output() == "first\nsecond\n", within=5)
    site.ledger.open_gate("lines")
    assert handle.get(20) == 3
    assert handle.output() == "first\nsecond\nthird\n"


def test_everything_that_is_written_to_a_descriptor_is_captured(site: Site) -> None:
    handle = site.send("speaks", "speaks")
    wanted = [
        "printed",
        "to stderr",
        "to the descriptor",
        "from a subprocess",
        "logged 7",
        "from C",
    ]

    def shown() -> bool:
        said = handle.log()
        return all(words in said for words in wanted)

    # Readable while the task runs.
    until(shown, within=10)
    assert handle.status() is TaskStatus.RUNNING
    site.ledger.open_gate("speaks")
    handle.wait(20)
    said = site.printed(handle)
    assert said.index(b"printed") < said.index(b"to stderr") < said.index(b"from a subprocess")
    # Kept as it was; what shows it makes it safe.
    assert b"\x1b]52;c;evil\x07" in said
    assert b"\xff\xfe not text\n" in said


def test_output_that_is_not_wanted_is_not_kept(site: Site) -> None:
    handle = site.send("silent")
    handle.wait(20)
    assert site.printed(handle) == b""


def test_each_attempt_has_output_of_its_own(site: Site) -> None:
    handle = site.send("speaks-twice")
    handle.wait(20)
    assert [handle.log(attempt=n) for n in (1, 2)] == ["attempt 1\n", "attempt 2\n"]


def test_the_last_words_of_a_process_that_dies(site: Site) -> None:
    handle = site.send("last-words")
    handle.wait(20)
    assert handle.log() == "last words\n"


def test_the_output_of_short_tasks_is_told_apart(site: Site) -> None:
    handles = site.module.chatty.send_many([(number,) for number in range(200)])
    site.app.wait(handles, 20)
    assert [handle.log() for handle in handles] == [f"chat {n}\n" for n in range(200)]


def test_a_flood_is_bounded(site: Site) -> None:
    handle = site.send("floods", 20)
    assert handle.wait(30) is TaskStatus.COMPLETED
    said = site.printed(handle)
    assert len(said) < 1_100_000
    assert said.startswith(b"the beginning\n")
    assert said.endswith(b"the end\n")
    assert b"bytes left out ...]\n" in said


@pytest.mark.parametrize("name", ["stack", "stack-thread", "stack-async"])
def test_the_stack_of_a_running_task(site: Site, name: str) -> None:
    handle = site.send(name, name)
    site.begun(name)
    site.run(partial(stack_requests.ask_stack, handle.id.bytes))
    text = until(lambda: site.run(partial(stack_requests.take_stack, handle.id.bytes)), within=5)
    assert text is not None
    assert "deep_down" in text
    assert "gate" in text
    site.ledger.open_gate(name)
    assert handle.wait(20) is TaskStatus.COMPLETED


def test_what_an_attempt_cost(site: Site) -> None:
    handles = []
    for megabytes, seconds in ((1, 0.0), (80, 0.2), (1, 0.0)):
        handles.append(site.send("spends", megabytes, seconds))
        handles[-1].wait(20)
    small, large, after = handles
    attempt = only_attempt(large)
    assert attempt.cpu_time is not None
    assert 0.2 <= attempt.cpu_time.total_seconds() < 1.0
    assert attempt.peak_memory_kb is not None
    assert attempt.peak_memory_kb > 80_000
    for other in (small, after):
        peak = only_attempt(other).peak_memory_kb
        assert peak is None or peak < 80_000


def test_the_worker_reports_itself(site: Site, worker: WorkerProcess) -> None:
    (record,) = site.run(list_workers)
    assert record.pid == worker.pid
    found = until(lambda: site.run(partial(states, record.worker_id)), within=5)
    state = found[0]
    assert state.processes >= 1
    assert state.memory_usage_mb is not None
    assert state.memory_usage_mb > 5
    assert state.cpu_percent is not None
    assert "default" in state.queues


def test_what_a_lost_run_says_is_refused(site: Site) -> None:
    handle = site.send("asks-too-late", "late")
    site.begun("late")
    handle.cancel()
    assert handle.wait(20) is TaskStatus.CANCELLED
    assert site.ledger.count("step", handle.id) == 0
    assert only_attempt(handle).outcome is AttemptOutcome.CANCELLED
