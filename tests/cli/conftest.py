"""An operator at a command line: a store of each engine, and `holdfast` run against it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.cli.main import main
from holdfast.store.verbs import workers
from tests.support.stores import Kind, Lab, Labs, labs

__all__ = ["labs"]


class Said:
    """What a command answered."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a plain table, without its header."""
        return [line.split() for line in self.lines[1:]]

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n--- stderr ---\n{self.err}"


def run(*arguments: str, answer: str | None = None) -> Said:
    """Run `holdfast` in this process; an exception that it lets through is the test's."""
    found = CliRunner().invoke(main, arguments, input=answer, prog_name="holdfast")
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return Said(found.exit_code, found.stdout, found.stderr)


class Operator:
    """Runs commands on the store of a lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    @property
    def place(self) -> list[str]:
        """The options that say where the store is."""
        settings = self.lab.store.settings
        if self.lab.path is not None:
            return ["--url", f"sqlite:///{self.lab.path}"]
        assert settings.schema is not None
        return ["--url", settings.address, "--schema", settings.schema]

    def __call__(self, *arguments: str, answer: str | None = None, code: int = 0) -> Said:
        """Run a command, which must end with this exit code."""
        said = run(*arguments, *self.place, answer=answer)
        # A lab lives in 2030, and a SQLite store says that this machine does not.
        said.err = re.sub(r"warning: the machine's clock is .*\n", "", said.err)
        assert said.code == code, said
        return said


@pytest.fixture(params=[Kind.SQLITE_FILE, Kind.POSTGRES])
def operator(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Operator]:
    """An operator on each engine in turn."""
    with labs.open(request.param) as lab:
        yield Operator(lab)


@pytest.fixture
def lab(operator: Operator) -> Lab:
    """The store of the operator, to put tasks into states by the store's own verbs."""
    return operator.lab


def join(lab: Lab, name: str) -> None:
    """A worker of the queues a and b, as it registers itself."""
    lab.run(
        workers.register(
            name,
            hostname="host-1",
            pid=42,
            version="1.0",
            lease_us=30_000_000,
            queues='["a","b"]',
            known='["t@1"]',
            settings='{"processes":2}',
        )
    )
