"""The tasks of an app, by name and version.

Owns the rule that a name and version mean one function. Never imports anything to find a
task: what was not defined here is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.errors import ConfigError, UnknownTask
from holdfast.core.options.definition import TaskDefinition

__all__ = ["Registry", "is_builder"]


class Registry:
    """What this process knows how to call."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[int, TaskDefinition]] = {}

    def add(self, task: TaskDefinition) -> None:
        """Make a task known; `ConfigError` if its name and version are taken."""
        versions = self._tasks.setdefault(task.name, {})
        other = versions.get(task.version)
        if other is not None:
            raise ConfigError(
                f"task {task.name!r} version {task.version} is defined twice, by "
                f"{_place(other)} and by {_place(task)}: give one another name or version",
                option="name",
            )
        versions[task.version] = task

    def find(self, name: str, version: int | None = None) -> TaskDefinition | None:
        """The task of this name and version, or its newest version; None if there is none."""
        versions = self._tasks.get(name)
        if not versions:
            return None
        return versions.get(max(versions) if version is None else version)

    def get(self, name: str, version: int | None = None) -> TaskDefinition:
        """The same, but `UnknownTask` if there is none."""
        found = self.find(name, version)
        if found is None:
            raise UnknownTask(name, version, known=self._tasks)
        return found

    def __iter__(self) -> Iterator[TaskDefinition]:
        return (task for versions in self._tasks.values() for task in versions.values())

    def __len__(self) -> int:
        return sum(map(len, self._tasks.values()))


def is_builder(task: TaskDefinition) -> bool:
    """Whether a task is the builder of a workflow."""
    return "build" in getattr(task.function, "__dict__", ())


def _place(task: TaskDefinition) -> str:
    code = getattr(task.function, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"{task.function.__module__}.{task.function.__qualname__}{where}"
