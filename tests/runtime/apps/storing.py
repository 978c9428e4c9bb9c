"""Tasks that use the store while they run; HOLDFAST_URL says which."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any
from uuid import UUID

from holdfast import Holdfast
from holdfast.runtime.child.context import current_task

app = Holdfast()


@app.task("inner")
def inner(a: int, b: int) -> int:
    return a + b


@app.task("send")
def send(number: int) -> list[str]:
    return [str(inner.send(n, 1).id) for n in range(number)]


@app.task("send_many")
def send_many(number: int) -> list[str]:
    return [str(handle.id) for handle in inner.send_many([(n, 1) for n in range(number)])]


@app.task("send_and_get")
def send_and_get() -> int:
    return inner.send(20, 22).get(timeout=20)


@app.task("send_and_get_async")
async def send_and_get_async() -> int:
    handles = [await inner.asend(n, 1) for n in range(5)]
    return sum(await asyncio.gather(*(handle.aget(timeout=20) for handle in handles)))


@app.task("operate")
def operate(task_id: str) -> str:
    app.control.tasks.cancel(UUID(task_id))
    return str(app.handle(task_id).status())


def _send_in_fork() -> None:
    inner.send(1, 2)


@app.task("send_from_a_fork")
def send_from_a_fork() -> int | None:
    process = get_context("fork").Process(target=_send_in_fork)
    process.start()
    process.join(20)
    return process.exitcode


@dataclass
class Receipt:
    number: int


@app.task("pay")
def pay(fail: bool) -> list[Any]:
    task = current_task()
    calls: list[str] = []

    def charge(amount: int) -> Receipt:
        calls.append("charge")
        return Receipt(amount)

    receipt = task.checkpoint("charge", charge, 5)
    again = task.checkpoint("charge", charge, 5)
    assert again == receipt == Receipt(5)
    nothing = task.checkpoint("nothing", calls.append, "nothing")
    if fail:
        raise ValueError("after the charge")
    return [calls, nothing]


@app.task("pay_async")
async def pay_async() -> tuple[list[str], Receipt]:
    task = current_task()
    calls: list[str] = []

    async def charge(amount: int) -> Receipt:
        calls.append("charge")
        return Receipt(amount)

    receipt = await task.acheckpoint("charge", charge, 5)
    assert isinstance(receipt, Receipt)
    return calls, receipt


def connect() -> Any:
    settings = app.config.store
    if settings.engine == "sqlite":
        return sqlite3.connect(settings.address)
    import psycopg

    return psycopg.connect(settings.address)


@app.task("complete")
def complete(how: str) -> str:
    task = current_task()
    connection = connect()
    try:
        connection.execute("INSERT INTO ledger VALUES ('entry')")
        task.complete_in(connection, "by my own hand")
        if how == "commit":
            connection.commit()
        else:
            connection.rollback()
        if how == "raise":
            raise ValueError("after all")
    finally:
        connection.close()
    return "ignored"


@app.task("environment")
def environment() -> str:
    return os.environ["HOLDFAST_URL"]
