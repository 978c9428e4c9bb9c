"""Logs and outputs over HTTP: whole, from a place on, and while they are written."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.store.verbs.evidence import LogPart, TaskNote, append_logs, write_notes
from tests.client.conftest import Hands
from tests.web.client import WebClient


@pytest.mark.parametrize("chunk", [3])
def test_a_log_is_read_whole_and_in_pieces(
    chunk: int, app: Holdfast, hands: Hands, admin: WebClient
) -> None:
    text = "zwei Zeilen: ä, ö\nund € noch eine\n"
    task = app.send("any")
    claimed = hands.take(task)
    data = text.encode()
    pieces = [data[start : start + chunk] for start in range(0, len(data), chunk)]
    parts = [LogPart(claimed.key, claimed.token, 1, n, each) for n, each in enumerate(pieces)]
    hands.run(append_logs(parts))
    at = f"/api/v1/tasks/{task.id}/log"
    assert admin.get(f"{at}/text").text == text
    first = admin.get(at).json()
    assert "".join(part["text"] for part in first["parts"]) == text
    assert first["ended"] is False
    again = admin.get(at, params={"after": first["next"], "wait": "0.01"}).json()
    assert again == {"parts": [], "next": first["next"], "ended": False}
    hands.complete(claimed, "null")
    last = admin.get(at, params={"after": first["next"], "wait": "20"}).json()
    assert (last["parts"], last["ended"]) == ([], True)


def test_an_output_is_read_whole_and_from_a_place_on(
    app: Holdfast, hands: Hands, admin: WebClient
) -> None:
    task = app.send("any")
    claimed = hands.take(task)
    hands.run(write_notes([TaskNote(claimed.key, claimed.token, output="one two")]))
    at = f"/api/v1/tasks/{task.id}/output"
    assert admin.get(at).json() == {"text": "one two", "next": 7, "ended": False}
    rest = admin.get(at, params={"after": "4", "wait": "0.01"}).json()
    assert (rest["text"], rest["next"]) == ("two", 7)
    assert admin.get(f"{at}/text").text == "one two"


@pytest.mark.parametrize("query", ["after=x", "after=1", "after=1.99999999999", "attempt=0"])
def test_a_place_that_makes_no_sense_is_422(query: str, app: Holdfast, admin: WebClient) -> None:
    task = app.send("any")
    assert admin.get(f"/api/v1/tasks/{task.id}/log?{query}").status_code == 422
