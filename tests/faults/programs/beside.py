"""Programs that keep their own rows in the file of their tasks, through the standard `sqlite3`.

`python -m tests.faults.programs.beside KIND PATH NAME ROUNDS` runs one of them: in each round it
commits an order with its own library and sends a task, in whatever way that kind of program does
it, and then says the number of the round. It knows nothing of drivers, and sets nothing.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from holdfast import Holdfast

if TYPE_CHECKING:
    from collections.abc import Iterator

FILLER = "x" * 300
_INSERT = "INSERT INTO orders (name) VALUES (?)"


class Program:
    """One program: its file, its app, and what it has acknowledged."""

    def __init__(self, path: str, name: str, rounds: int) -> None:
        self.path = path
        self.name = name
        self.rounds = range(rounds)
        self.app = Holdfast(f"sqlite:///{path}")
        self.ship = self.app.task("ship")(_ship)
        self._said = threading.Lock()

    def order(self, number: int) -> str:
        return f"{self.name}-{number} {FILLER}"

    def say(self, number: object) -> None:
        """Both are durable; whoever reads this may rely on it."""
        with self._said:
            os.write(1, f"{self.name}-{number}\n".encode())


def _ship(order: str) -> None:
    del order


def flask(program: Program) -> None:
    """A connection for each request, as Flask's tutorial has it."""
    for number in program.rounds:
        db = sqlite3.connect(program.path)
        db.row_factory = sqlite3.Row
        db.execute(_INSERT, (program.order(number),))
        db.commit()
        db.close()
        program.ship.send(f"{program.name}-{number}")
        program.say(number)


def kept(program: Program) -> None:
    """Another connection is opened while the first is in its transaction, as pools do."""
    db = sqlite3.connect(program.path, timeout=30)
    for number in program.rounds:
        db.execute(_INSERT, (program.order(number),))
        other = sqlite3.connect(program.path)
        other.execute("SELECT count(*) FROM orders").fetchone()
        other.close()
        db.commit()
        program.ship.send(f"{program.name}-{number}")
        program.say(number)
    db.close()


def threads(program: Program) -> None:
    """Requests in threads, and tasks sent from others that know no sqlite3."""
    numbers = count()
    mutex = threading.Lock()

    def serve() -> None:
        for _ in range(len(program.rounds) // 4):
            with mutex:
                number = next(numbers)
            db = sqlite3.connect(f"file:{program.path}?mode=rw", uri=True, timeout=30)
            db.execute(_INSERT, (program.order(number),))
            db.commit()
            db.close()
            program.ship.send(f"{program.name}-{number}")
            program.say(number)

    def send() -> None:
        while any(thread.is_alive() for thread in serving):
            program.ship.send("another")

    serving = [threading.Thread(target=serve) for _ in range(4)]
    sending = threading.Thread(target=send)
    for thread in (*serving, sending):
        thread.start()
    for thread in (*serving, sending):
        thread.join()


def forks(program: Program) -> None:
    """A master that has sent and connected, and children that do both."""
    flask(_part(program, "master", 3))
    children = []
    for index in range(3):
        child = os.fork()
        if child == 0:
            flask(_part(program, f"child{index}", len(program.rounds) // 3))
            os._exit(0)
        children.append(child)
    flask(_part(program, "parent", len(program.rounds) // 3))
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0


def _part(program: Program, name: str, rounds: int) -> Program:
    part = Program.__new__(Program)
    part.__dict__.update(program.__dict__)
    part.name, part.rounds = f"{program.name}.{name}", range(rounds)
    return part


def sqlalchemy(program: Program) -> None:
    """Sessions of SQLAlchemy; half of the tasks commit with their order."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.orm import Session

    engine = create_engine(f"sqlite:///{program.path}", connect_args={"timeout": 30})
    insert = text("INSERT INTO orders (name) VALUES (:name)")
    for number in program.rounds:
        with Session(engine) as session:
            session.execute(insert, {"name": program.order(number)})
            if number % 2:
                with program.app.using(session):
                    program.ship.send(f"{program.name}-{number}")
            session.commit()
        if not number % 2:
            program.ship.send(f"{program.name}-{number}")
        program.say(number)
    engine.dispose()


def django(program: Program) -> None:
    """Django, whose first query comes after the first task; tasks are sent in `atomic()`."""
    from django.conf import settings

    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": program.path}
    database |= {"OPTIONS": {"timeout": 30}}  # type: ignore[dict-item]
    settings.configure(DATABASES={"default": database})
    from django.db import connection, transaction

    atomic: Any = transaction.atomic
    program.ship.send("before")
    for number in program.rounds:
        # What Django sends at the beginning and the end of a request closes old connections.
        with atomic(), program.app.using(connection):
            if number % 2:
                program.ship.send(f"{program.name}-{number}")
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO orders (name) VALUES (%s)", [program.order(number)])
            if not number % 2:
                program.ship.send(f"{program.name}-{number}")
        connection.close()
        program.say(number)


def aiosqlite(program: Program) -> None:
    """aiosqlite, with a connection for each of several requests at once."""
    asyncio.run(_serve(program))


async def _serve(program: Program) -> None:
    import aiosqlite

    async def serve(numbers: Iterator[int]) -> None:
        for number in numbers:
            async with aiosqlite.connect(program.path, timeout=30) as db:
                await db.execute(_INSERT, (program.order(number),))
                await db.commit()
            await program.ship.asend(f"{program.name}-{number}")
            program.say(number)

    numbers = iter(program.rounds)
    await asyncio.gather(*(serve(numbers) for _ in range(3)))


KINDS: dict[str, Callable[[Program], None]] = {
    kind.__name__: kind for kind in (flask, kept, threads, forks, sqlalchemy, django, aiosqlite)
}


def main(kind: str, path: str, name: str, rounds: str) -> None:
    program: Any = Program(path, name, int(rounds))
    run = partial(KINDS[kind], program)
    if kind == "flask":
        # It has sent before its first request comes.
        program.ship.send("before")
    run()


if __name__ == "__main__":
    main(*sys.argv[1:])
