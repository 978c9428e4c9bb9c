"""Which of a worker's processes this one is.

Owns one word per process, set once by the entry points of the template and of spawned children,
and inherited by what they fork. Outside a worker's processes there is none.

A template imports the user's module; a module that starts a worker when it is imported would
start another template, and so on until the machine is full. So a worker is not started from
inside a worker's processes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from holdfast.core.errors import ConfigError

Role: TypeAlias = Literal["importing", "child"]

_role: Role | None = None


def take(role: Role) -> None:
    """Say what this process does from now on."""
    global _role
    _role = role


def refuse_inline() -> None:
    """Raise if tasks must not be run in this process: it is a worker's, and imports the app."""
    if _role == "importing":
        raise ConfigError(
            "a worker is starting, and the module it imports for its tasks starts a worker itself "
            'when it is imported: move that call below `if __name__ == "__main__":`, or into a '
            "function that the import does not call (a startup handler of the web application)"
        )


def refuse_worker() -> None:
    """Raise if a worker must not be started in this process."""
    refuse_inline()
    if _role == "child":
        raise ConfigError(
            "code that runs inside a worker's process cannot start a worker: start it from a "
            "process of its own, with `holdfast worker MODULE:APP`"
        )
