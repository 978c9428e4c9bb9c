"""The relay: what works on a store works through the supervisor, and nothing is left open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

import pytest

from holdfast.core.errors import (
    ConfigError,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    UniqueConflict,
)
from holdfast.core.records import SubmitAnswer, TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.runtime.child.remote_store import RemoteStore
from holdfast.runtime.supervisor.relay.server import RelayServer
from holdfast.runtime.wire import framing
from holdfast.runtime.wire import messages as wire
from holdfast.runtime.wire.relay_codec import (
    decode_asked,
    encode_asked,
    rebuild,
    refusal,
)
from holdfast.store.op import (
    At,
    Changes,
    Channel,
    Column,
    Hint,
    Ints,
    Keys,
    Mode,
    Op,
    Statement,
    Steps,
    Table,
    Texts,
    Uuids,
)
from holdfast.store.verbs import cancel, claims, evidence, inspect, operate, queues
from holdfast.store.verbs.submit import submit
from tests.support.deadline import until
from tests.support.relay import Relay
from tests.support.stores import ENGINES, Lab, Labs
from tests.support.verbs import KNOWN, LEASE_US, QUEUE, new_token, submission


class Child:
    """A child's `RemoteStore`, joined to a relay server by real frames and no socket."""

    def __init__(self, server: RelayServer, lab: Lab) -> None:
        self._server = server
        self.silent = False
        self.store = RemoteStore(self.send, lab.store.settings)
        self.asked = 0
        self.held: set[tuple[object, object]] = set()

    def holds(self, key: object, token: object) -> bool:
        return (key, token) in self.held

    def send(self, *messages: wire.Message) -> bool:
        """The child speaks."""
        for message in messages:
            (heard,) = framing.Reader(wire.ToSupervisor).feed(framing.frame(message))
            if self.silent:
                continue
            if isinstance(heard, wire.Listen):
                self._server.listens(self, heard)
            else:
                self.asked += 1
                self._server.asked(self, heard)
        return True

    def say(self, *messages: wire.Message) -> None:
        """The supervisor speaks."""
        for message in messages:
            (heard,) = framing.Reader(wire.ToChild).feed(framing.frame(message))
            if isinstance(heard, wire.Rang):
                self.store.rang(heard)
            else:
                self.store.answered(heard)

    def die(self) -> None:
        self.silent = True
        self._server.gone(self)


@pytest.fixture(params=ENGINES)
def lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Lab]:
    with labs.open(request.param) as found:
        yield found


@pytest.fixture(scope="session")
def labs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Labs]:
    found = Labs(
        lambda: request.getfixturevalue("postgres_server"), tmp_path_factory.mktemp("labs")
    )
    yield found
    found.close()


@pytest.fixture
def server(lab: Lab) -> Iterator[RelayServer]:
    relay = Relay(lab.store, patience=0.3)
    yield relay.server
    relay.close()


@pytest.fixture
def child(server: RelayServer, lab: Lab) -> Child:
    return Child(server, lab)


# Everything that a store does.


def test_a_statement_survives_the_wire() -> None:
    statement = Statement(
        "claim",
        {
            "text": "é\x00",
            "none": None,
            "flag": True,
            "id": bytes(16),
            "at": At(1_900_000_000_000_000),
            "uuids": Uuids([bytes(16)]),
            "texts": Texts(["a", None]),
            "ints": Ints([1, 2]),
            "keys": Keys([1, bytes(16)]),
            "map": {"a": [1, None]},
            "positional": Changes([(1, bytes(16), ("x", None, At(5)))]),
            "named": Changes([(bytes(16), bytes(16), {"a": 1})]),
            "with_text": Changes([(1, bytes(16), (7, "long"))], text=1),
        },
        Table({"id": Column.UUID, "data": Column.BYTES}, [(bytes(16), b"\xff")]),
        Hint(Channel.READY, ["q"]),
    )
    ask = wire.Ask(1, 2, 0, "write", "claim", encode_asked((statement, Statement("counts"))))
    (heard,) = framing.Reader(wire.ToSupervisor).feed(framing.frame(ask))
    found_both = decode_asked(heard.statement)
    assert isinstance(found_both, tuple)
    first, second = found_both
    assert second == Statement("counts")
    assert first.name == statement.name
    assert first.table == statement.table
    assert first.hint == statement.hint
    for name, value in statement.params.items():
        found = first.params[name]
        assert type(found) is type(value), name
        if isinstance(value, Changes):
            assert [(k, t, _plain(f)) for k, t, f in found.rows] == [
                (k, t, _plain(f)) for k, t, f in value.rows
            ]
            assert found.text == value.text
        else:
            assert found == value


def _plain(fields: Any) -> Any:
    return fields if isinstance(fields, dict) else list(fields)


@pytest.mark.parametrize("plain", [None, [], ["../0001", {}, None, None], ["x"], 5, [[]]])
def test_what_is_no_statement_is_refused(plain: Any) -> None:
    with pytest.raises(ValueError, match="statement"):
        decode_asked(plain)


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable("away", commit_unknown=True, silent=True),
        StoreUnavailable("again", conflict=True),
        SchemaMismatch("older", found=1, expected=2),
        ConfigError("wrong", option="url"),
        StoreError("no"),
    ],
)
def test_an_error_keeps_its_class_and_fields(error: StoreError) -> None:
    (heard,) = framing.Reader(wire.ToChild).feed(framing.frame(refusal(7, error)))
    found = rebuild(heard)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(error) == vars(found)
    assert found.retryable == error.retryable


def test_an_error_of_any_other_kind_is_a_store_error() -> None:
    found = rebuild(refusal(1, ZeroDivisionError("by zero")))
    assert type(found) is StoreError
    assert "ZeroDivisionError: by zero" in str(found)


def test_reads_and_writes_of_every_mode(lab: Lab, child: Child) -> None:
    run = child.store.run
    sent = [submission() for _ in range(5)]
    assert {s.answer for s in run(submit(sent))} == {SubmitAnswer.CREATED}
    assert {s.answer for s in run(submit(sent))} == {SubmitAnswer.EXISTING}
    assert run(inspect.statuses([sent[0].id])) == {sent[0].id: TaskStatus.PENDING}
    assert run(inspect.tasks_by_id([sent[0].id])) == {sent[0].id: lab.task(sent[0].id)}
    assert len(run(inspect.list_tasks(TaskFilter(), limit=3)).tasks) == 3
    token = new_token()
    claim = claims.claim(
        claims.Request(
            token=token, worker_id="w", queue=QUEUE, known=[KNOWN], wanted=2, lease_us=LEASE_US
        )
    )
    taken = lab.store.run(claim).tasks
    assert [task.id for task in taken] == [sent[0].id, sent[1].id]
    lab.store.run(claims.start([claims.Begin(t.key, t.token, 1, "c") for t in taken], hostname="h"))
    child.held.add((taken[0].key, token))
    assert run(evidence.write_checkpoint(taken[0].key, token, "step", "1"))
    assert run(evidence.read_checkpoint(taken[0].key, token, "step")) == ("1",)
    run(cancel.cancel([sent[2].id, taken[0].id]))
    assert lab.task(sent[2].id).status is TaskStatus.CANCELLED
    assert lab.task(taken[0].id).cancel_requested_at is not None
    assert run(operate.resubmit([sent[2].id])) == {sent[2].id: True}
    run(queues.pause(QUEUE))
    assert [queue.paused_at is not None for queue in run(queues.list_queues())] == [True]


def test_a_unique_conflict_is_found_in_the_child(child: Child) -> None:
    first = submission(unique_slot="u", unique_key="u")
    again = submission(unique_slot="u", unique_key="u")
    child.store.run(submit([first]))
    assert child.store.run(submit([again]))[0].id == first.id
    asking = submission(unique_slot="u", unique_key="u", on_conflict="raise")
    assert child.store.run(submit([asking]))[0].answer is SubmitAnswer.CONFLICT


def test_an_error_in_the_child_undoes_the_write(lab: Lab, child: Child) -> None:
    sent = submission()

    def steps() -> Steps[None]:
        yield from submit([sent])
        raise UniqueConflict(sent.id, name="t")

    with pytest.raises(UniqueConflict):
        child.store.run(Op(steps(), Mode.WRITE, "send and fail"))
    _free(lab)
    assert lab.run(inspect.statuses([sent.id])) == {}


def test_an_error_of_the_store_reaches_the_child(lab: Lab, child: Child) -> None:
    def steps() -> Steps[None]:
        yield Statement("no_such_statement")

    for mode in Mode:
        with pytest.raises(StoreError, match="no_such_statement"):
            child.store.run(Op(steps(), mode, "wrong"))
    _free(lab)


def test_schemas_are_not_a_tasks_business(child: Child) -> None:
    with pytest.raises(StoreError, match="db migrate"):
        child.store.with_schema(lambda _: None, lock=True)


def _free(lab: Lab) -> None:
    """Nothing is left open: a write of the worker's own gets through at once."""
    lab.send()


# Transactions that nobody ends.


def _send_and_wait(sent: Any, waits: Callable[[], object]) -> Op[None]:
    def steps() -> Steps[None]:
        yield from submit([sent])
        waits()
        yield Statement("counts_that_never_come")

    return Op(steps(), Mode.WRITE, "send and wait")


def test_the_death_of_a_child_undoes_its_write(lab: Lab, child: Child) -> None:
    sent = submission()
    thread = threading.Thread(
        target=lambda: child.store.run(_send_and_wait(sent, child.die)), daemon=True
    )
    thread.start()
    until(lambda: child.silent)
    _free(lab)
    assert lab.run(inspect.statuses([sent.id])) == {}


def test_a_child_that_does_not_go_on_loses_its_transaction(
    lab: Lab, server: RelayServer, child: Child
) -> None:
    sent = submission()
    passed = threading.Event()

    def wait() -> None:
        until(lambda: not server._open)
        _free(lab)
        passed.set()

    with pytest.raises(StoreError, match=r"rolled back: .* within 0\.3 s"):
        child.store.run(_send_and_wait(sent, wait))
    assert passed.is_set()
    assert lab.run(inspect.statuses([sent.id])) == {}
    assert child.store.run(submit([submission()])), "the next operation works"


# Sends of many.


def test_sends_of_all_children_share_commits(lab: Lab, server: RelayServer) -> None:
    children = [Child(server, lab) for _ in range(8)]
    sent = [[submission() for _ in range(10)] for _ in children]
    runs: list[str] = []
    attempt = lab.store.attempt

    def counted(make: Callable[[], Op[Any]], **options: Any) -> Any:
        runs.append(make().name)
        return attempt(make, **options)

    lab.store.attempt = counted  # type: ignore[method-assign]

    def send(number: int) -> list[SubmitAnswer]:
        store = children[number].store
        return [store.run(submit([one]))[0].answer for one in sent[number]]

    with ThreadPoolExecutor(len(children)) as pool:
        answers = list(pool.map(send, range(len(children))))
    assert {answer for found in answers for answer in found} == {SubmitAnswer.CREATED}
    ids = [one.id for found in sent for one in found]
    assert len(lab.run(inspect.statuses(ids))) == 80
    assert runs.count("submit") < 80


def test_the_same_send_from_two_children_is_one_task(lab: Lab, server: RelayServer) -> None:
    children = [Child(server, lab) for _ in range(6)]
    one = submission()
    with ThreadPoolExecutor(len(children)) as pool:
        answers = list(pool.map(lambda c: c.store.run(submit([one]))[0].answer, children))
    assert sorted(answers) == [SubmitAnswer.CREATED] + [SubmitAnswer.EXISTING] * 5


def test_one_bad_send_fails_alone(lab: Lab, server: RelayServer) -> None:
    children = [Child(server, lab) for _ in range(6)]
    sent = [submission(priority=0 if n == 3 else 50) for n in range(6)]

    def send(number: int) -> str:
        try:
            return str(children[number].store.run(submit([sent[number]]))[0].answer)
        except StoreError:
            return "refused"

    with ThreadPoolExecutor(len(children)) as pool:
        answers = list(pool.map(send, range(6)))
    assert answers == ["created"] * 3 + ["refused"] + ["created"] * 2


# Hints.


def test_hints_reach_those_who_listen(lab: Lab, child: Child) -> None:
    with child.store.listen(Channel.DONE) as listener:

        def ring() -> bool:
            lab.store.hint(Channel.DONE)
            return bool(listener.wait(0.2))

        until(ring)
        # The last ones that were rung for, and then silence, which only `wake` ends.
        until(lambda: not listener.wait(0.2))
        listener.wake()
        began = monotonic()
        assert listener.wait(60) == frozenset()
        assert monotonic() - began < 30


def test_a_child_can_hint(lab: Lab, child: Child) -> None:
    with lab.store.listen(Channel.READY) as listener:

        def ring() -> bool:
            child.store.hint(Channel.READY, ["q"])
            return "q" in listener.wait(0.2)

        until(ring)
