"""Tasks by a part of what names them, and the ids of all that fit."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from holdfast import ConfigError, Holdfast, Unique
from holdfast.client.task_search import Filter
from tests.client.conftest import Hands


@pytest.fixture
def sent(app: Holdfast) -> list[str]:
    """One task that each of the texts below finds."""
    handles = [
        app.send("Shop.Invoice"),
        app.options(unique=Unique("order:77-Ä")).send("other"),
        app.options(concurrency_key="tenant-ACME").send("other"),
        app.send("other"),
    ]
    return [str(handle.id) for handle in handles]


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ("invoice", 0),
        ("SHOP.", 0),
        ("order:77", 1),
        ("77-Ä", 1),
        ("acme", 2),
        ("100%", None),
        ("_", None),
        ("77-ä", None),
    ],
)
def test_a_text_is_found_in_names_and_keys(
    app: Holdfast, sent: list[str], text: str, which: int | None
) -> None:
    wanted = [] if which is None else [sent[which]]
    tasks = app.control.tasks
    assert [str(info.id) for info in tasks.list(text=text).tasks] == wanted
    assert [str(info.id) for info in tasks.list(text=text, status="PENDING").tasks] == wanted
    assert [str(each) for each in tasks.ids(text=text).ids] == wanted


def test_a_text_is_found_in_ids(app: Holdfast, sent: list[str]) -> None:
    (found,) = app.control.tasks.list(text=sent[3][-9:].upper()).tasks
    assert str(found.id) == sent[3]


@pytest.mark.parametrize("where", [Filter(name="many"), Filter(name="many", status="PENDING")])
def test_ids_are_those_of_the_list_in_pages_of_any_size(
    app: Holdfast, hands: Hands, where: Filter
) -> None:
    handles = [app.send("many", number) for number in range(7)]
    hands.finish(handles[0])
    ids = sorted((handle.id for handle in handles[1:]), reverse=True)
    wanted = ids if "status" in where else [*ids, handles[0].id]
    for limit in (1, 2, 6, 7, 100):
        found: list[UUID] = []
        before: UUID | None = None
        while True:
            page = app.control.tasks.ids(before=before, limit=limit, **where)
            assert len(page.ids) <= limit
            found += page.ids
            before = page.next
            if before is None:
                break
        assert found == wanted


def test_the_twin_finds_the_same(app: Holdfast, sent: list[str]) -> None:
    found = asyncio.run(app.control.tasks.aids(text="acme"))
    assert [str(each) for each in found.ids] == [sent[2]]


def test_an_unknown_field_is_refused(app: Holdfast) -> None:
    with pytest.raises(ConfigError, match="cannot be listed by 'kolor'"):
        app.control.tasks.ids(kolor="red")  # type: ignore[call-arg]
