"""What is stored comes back as it was: letters, sizes, numbers, on every way into the store."""

from __future__ import annotations

import pytest

from holdfast.core.outcome import Failed
from holdfast.core.payload.codec import encode_value
from holdfast.core.payload.failure import decode_error
from holdfast.core.result import TaskError
from holdfast.store.verbs import finish, inspect
from tests.support.stores import Lab

TEXTS = {
    "empty": '""',
    "escaped nul": '"a\\u0000b"',
    "escaped surrogates": '"\\ud83d\\ude00"',
    "emoji": '"😀 ünïcödé 漢字 \u200f"',
    "line separators": '"\\n\\r\\t\u2028\u2029"',
    "quotes and backslashes": '"\\"\\\\ \'\' ``"',
    "placeholders": '"%s %(id)s %% :id :now $1 ? ?1 {0} {}"',
    "sql": '"\'); DROP TABLE holdfast_tasks; --"',
    "json in json": '"{\\"token\\":[1,2]}"',
    "64 bit": "[9223372036854775807,-9223372036854775808]",
    "floats": "[1.5,-0.0,1e308,5e-324,0.1]",
    "spaces as sent": '{ "b" : 1,"a":[ ] }',
    "deep": "[" * 100 + "]" * 100,
    "large": '"' + "x" * 1_000_000 + '"',
    "large, many bytes": '"' + "漢" * 300_000 + '"',
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_comes_back_exactly(lab: Lab, name: str) -> None:
    text = TEXTS[name]
    array, mapping = f"[{text}]", f'{{"k":{text}}}'
    short = "large" not in name
    id = lab.send(
        args=array,
        kwargs=mapping,
        task_options=mapping,
        tags=array,
        trace_context=text,
        schedule_name=text,
        unique_slot=text if short else None,
    )
    (task,) = lab.claim().tasks
    assert (task.args, task.kwargs, task.task_options) == (array, mapping, mapping)
    lab.started(task)
    lab.complete(task, text)
    record = lab.task(id)
    assert (record.args, record.kwargs, record.tags) == (array, mapping, array)
    assert record.trace_context == record.schedule_name == record.result == text
    assert record.unique_key == (text if short else None)
    assert lab.run(inspect.endings([id]))[id].result == text


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", "😀", "%s :id '", "x" * 10_000], ids=ascii)
def test_errors_come_back_whatever_is_in_them(lab: Lab, value: str) -> None:
    """The codec escapes what a database cannot hold; an error must never fail to be stored."""
    error = TaskError("BAD", f"message {value}", data={"value": "plain"})
    task = lab.running()
    lab.end(task, Failed(error))
    record = lab.task(task.id)
    assert record.result is not None
    assert decode_error(record.result) == error
    assert record.error_code == "BAD"
    (attempt,) = lab.attempts(task.id)
    assert attempt.error == record.result


def test_what_the_codec_makes_is_what_is_stored(lab: Lab) -> None:
    text = encode_value({"ü": [1, 2.5, None, True, "\x00"], "x": {"y": "😀"}})
    task = lab.running(args=f"[{text}]")
    lab.complete(task, text)
    record = lab.task(task.id)
    assert (record.args, record.result) == (f"[{text}]", text)


def test_a_batch_of_many_different_results(lab: Lab) -> None:
    lab.send_many(len(TEXTS))
    tasks = lab.claim().tasks
    lab.start(*tasks)
    given = dict(zip([task.id for task in tasks], TEXTS.values(), strict=True))
    lab.run(
        finish.complete([finish.Completion(task.key, task.token, given[task.id]) for task in tasks])
    )
    found = lab.run(inspect.endings(list(given)))
    assert {id: ending.result for id, ending in found.items()} == given
