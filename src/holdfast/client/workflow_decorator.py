"""The decorator `@app.workflow`: bare, with a name, with options.

Owns its types, and the making of a task whose code is the builder: a workflow that is a step of
another is built in a worker, when its turn has come.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack, get_args, overload

from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.workflow import Workflow, WorkflowChoice, built, deadline_of, unique_of
from holdfast.client.workflow_function import WorkflowFunction
from holdfast.core.errors import ConfigError
from holdfast.core.moment import Span
from holdfast.core.options import checks
from holdfast.core.options.definition import define
from holdfast.core.options.unique import Unique
from holdfast.core.workflows.builder import MOST_STEPS
from holdfast.core.workflows.plan import OnFailure

__all__ = ["WorkflowDecorator"]

P = ParamSpec("P")
R = TypeVar("R")


class DefinitionOptions(TypedDict, total=False):
    """The options of `@app.workflow`; what is left out has its default."""

    version: int
    """Stored with each workflow; raise it when the graph changes."""
    on_failure: OnFailure
    """What the first failure does: "continue" runs what does not depend on it, "fail_fast" cancels
    all but handlers, "pause" waits for an operator."""
    deadline: Span | None
    """How long the whole may take."""
    unique: Unique | None
    """At most one live workflow per key."""
    tags: Iterable[str]
    """Words to find it by."""
    queue: str
    """Where it waits to be built, as a sub-workflow."""
    max_steps: int
    """How many steps it may have."""


class WorkflowDecorator:
    """Makes workflows of functions.

    @app.workflow("nightly", on_failure="fail_fast", deadline=3600)
    def nightly(wf: Workflow, day: date) -> Report: ...
    """

    def __init__(
        self,
        dispatch: Dispatch,
        default_timeout: float | None,
        name: str | None = None,
        options: DefinitionOptions | None = None,
    ) -> None:
        self._dispatch = dispatch
        self._default_timeout = default_timeout
        self._name = name
        self._options: DefinitionOptions = options or {}

    @overload
    def __call__(
        self, function: Callable[Concatenate[Workflow, P], R], /
    ) -> WorkflowFunction[P, R]: ...

    @overload
    def __call__(
        self, name: str | None = None, /, **options: Unpack[DefinitionOptions]
    ) -> WorkflowDecorator: ...

    def __call__(self, subject: Any = None, /, **options: Unpack[DefinitionOptions]) -> Any:
        if callable(subject) and not options:
            return self._make(subject)
        if subject is not None and not isinstance(subject, str):
            raise ConfigError(
                f"@app.workflow takes a name and options, not {subject!r:.100}: "
                'write @app.workflow, @app.workflow("name") or @app.workflow(deadline=3600)',
                option="name",
            )
        return WorkflowDecorator(self._dispatch, self._default_timeout, subject, options)

    def _make(self, function: Callable[..., Any]) -> WorkflowFunction[..., Any]:
        options = self._options
        unknown = options.keys() - DefinitionOptions.__annotations__
        if unknown:
            names = ", ".join(sorted(DefinitionOptions.__annotations__))
            raise ConfigError(
                f"{min(unknown)!r} is not an option of a workflow: use {names}",
                option=min(unknown),
            )
        if inspect.iscoroutinefunction(function):
            raise ConfigError(
                f"workflow {function.__qualname__} is an async def, and building a graph waits "
                "for nothing: make it a def"
            )
        policies: tuple[OnFailure, ...] = get_args(OnFailure)
        choice = WorkflowChoice(
            on_failure=checks.choice(options.get("on_failure", "continue"), policies, "on_failure"),
            deadline_us=deadline_of(options.get("deadline")),
            version=checks.at_least(1, options.get("version", 1), "version"),
            tags=checks.tags(options.get("tags", ())),
            unique=unique_of(options.get("unique")),
            max_steps=checks.at_least(1, options.get("max_steps", MOST_STEPS), "max_steps"),
        )
        definition = define(
            _as_task(function),
            self._name,
            default_timeout=self._default_timeout,
            version=choice.version,
            queue=options.get("queue", "default"),
        )
        limit = self._dispatch.access.config.max_payload
        definition.function.__dict__["build"] = lambda args, kwargs: built(
            definition, function, choice, args, kwargs, limit
        )
        self._dispatch.registry.add(definition)
        made = WorkflowFunction(definition, function, self._dispatch, choice)
        definition.function.__dict__["workflow"] = made
        return made


def _as_task(function: Callable[..., Any]) -> Callable[..., Any]:
    """The code of the task that is the workflow: it takes what the function takes after `wf`."""
    if not inspect.isfunction(function):
        raise ConfigError(f"{function!r} is not a function: decorate a def", option="function")
    parameters = list(inspect.signature(function).parameters.values())
    first = parameters[0] if parameters else None
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise ConfigError(
            f"workflow {function.__qualname__} takes no workflow: its first parameter must be "
            f"one, as in def {function.__name__}(wf: Workflow, …)"
        )

    def build(*args: Any, **kwargs: Any) -> Any:
        return code.__dict__["build"](args, kwargs)

    code: Any = build
    code.__module__, code.__name__ = function.__module__, function.__name__
    code.__qualname__, code.__doc__ = function.__qualname__, function.__doc__
    # For its annotations, which name what the author's module knows.
    code.__wrapped__ = function
    code.__annotations__ = {k: v for k, v in function.__annotations__.items() if k != first.name}
    code.__signature__ = inspect.Signature(parameters[1:])
    return build
