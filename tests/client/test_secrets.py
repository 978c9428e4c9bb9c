"""Secrets in the life of a task, and on each surface that shows it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from holdfast import ConfigError, Holdfast, PayloadError, Secret, Workflow
from holdfast.client.redacted import (
    redacted_attempt,
    redacted_task,
    redacted_why,
    redacted_workflow,
)
from holdfast.core.outcome import Failed
from holdfast.core.payload.codec import encode_value
from holdfast.core.payload.failure import describe
from holdfast.core.redaction import key_rule
from holdfast.core.result import TaskError
from tests.client.conftest import Hands

VALUE = "hunter2-very-secret"


def login(user: str, password: Secret[str], extra: dict[str, Any] | None = None) -> Secret[str]:
    return password


def test_it_is_stored_and_shown_nowhere(
    app: Holdfast, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    task = app.task("login")(login)
    handle = task.send("ada", Secret(VALUE))
    taken = hands.take(handle)
    assert VALUE in taken.args
    hands.complete(taken, encode_value(Secret(VALUE)))
    info = handle.info()
    assert (info.args, info.result) == (["ada", "***"], "***")
    assert VALUE not in repr(info)
    assert handle.get(timeout=5) == Secret(VALUE)
    assert VALUE not in caplog.text


def test_what_is_not_wrapped_is_refused_before_it_is_written(app: Holdfast) -> None:
    task = app.task("login")(login)
    with pytest.raises(PayloadError, match="Secret") as raised:
        task.send("ada", VALUE)  # type: ignore[arg-type]
    assert VALUE not in str(raised.value)
    with pytest.raises(PayloadError) as raised:
        task.send_many([("ada", Secret(VALUE)), ("bob", Secret(1))])
    assert VALUE not in str(raised.value)
    assert app.control.tasks.list().tasks == []
    # By name, as a program without the code writes it.
    handle = app.send("login", "ada", {"$secret": VALUE})
    assert handle.info().args == ["ada", "***"]


def test_keys_are_hidden_where_tasks_are_shown(app: Holdfast, hands: Hands) -> None:
    handle = app.send("any", 1, {"IBAN": VALUE, "card_no": VALUE}, password=VALUE, city="Rome")
    info = redacted_task(handle.info(), key_rule(["iban", "card_*"]))
    assert info.args == [1, {"IBAN": "***", "card_no": "***"}]
    assert info.kwargs == {"password": "***", "city": "Rome"}
    error = TaskError("A", "why", data={"token": VALUE, "code": 7})
    hands.end(hands.take(handle), Failed(error, listed=False))
    shown = redacted_task(handle.info(), key_rule([])).error
    assert shown is not None
    assert (shown.data, shown.message) == ({"token": "***", "code": 7}, "why")
    (made,) = handle.attempts()
    assert VALUE not in repr(redacted_attempt(made, key_rule([])))


def test_passwords_are_hidden_in_messages(app: Holdfast, hands: Hands) -> None:
    handle = app.send("connect")
    said = f"cannot reach postgresql://anna:{VALUE}@db/shop, password={VALUE}"
    try:
        raise ConnectionError(said)
    except ConnectionError as error:
        hands.end(hands.take(handle), Failed(describe(error), listed=False))
    info, (made,) = handle.info(), handle.attempts()
    hidden = "cannot reach postgresql://anna:***@db/shop, password=***"
    shown = redacted_task(info, key_rule([]))
    assert shown.error is not None
    assert shown.error.message == hidden
    assert str(shown.failed_reason).endswith(hidden)
    assert VALUE not in str(shown.error.traceback)
    again = redacted_attempt(made, key_rule([]))
    assert VALUE not in repr(again) + str(again.error and again.error.traceback)
    why = redacted_why(handle.why())
    assert why.reasons[0].endswith(hidden)


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Holdfast("sqlite:///:memory:", redact_keys=["a"]).config.redact_keys == ("a",)
    monkeypatch.setenv("HOLDFAST_REDACT_KEYS", " iban, card_* ")
    assert Holdfast("sqlite:///:memory:").config.redact_keys == ("iban", "card_*")
    for wrong in ("iban", [1], [""]):
        with pytest.raises(ConfigError, match="redact_keys"):
            Holdfast("sqlite:///:memory:", redact_keys=wrong)  # type: ignore[arg-type]
    assert not key_rule(["card_*"])("discard_all")


def test_a_schedule_and_a_workflow_show_none(app: Holdfast) -> None:
    task = app.task("login")(login)
    app.control.schedules.add("nightly", "@daily", task.call("ada", Secret(VALUE)))
    schedule = app.control.schedules.show("nightly")
    assert schedule.args == ["ada", "***"]
    assert VALUE not in repr(schedule) + repr(app.control.schedules.list())

    @app.workflow("whole")
    def whole(wf: Workflow, password: Secret[str]) -> Any:
        return wf.step(task, "ada", password).result

    handle = whole.send(Secret(VALUE))
    info = redacted_workflow(app.control.workflows.get(handle.id), key_rule([]))
    assert info.arguments == {"args": ["***"], "kwargs": {}}
    assert VALUE not in repr(app.control.workflows.show(handle.id))
