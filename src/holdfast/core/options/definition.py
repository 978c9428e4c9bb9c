"""A task as it was defined: function, name, version and options, all checked.

Owns the reading of a task's options. A wrong or contradicting one fails here, where it was
written, with a `ConfigError`; whoever holds a `TaskDefinition` need not check again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args

from holdfast.core.errors import ConfigError
from holdfast.core.hooks import TaskHooks
from holdfast.core.moment import Span
from holdfast.core.options import checks
from holdfast.core.options.concurrency_key import KeyTemplate
from holdfast.core.options.limit import Limit, Limits
from holdfast.core.options.limit import read as read_limits
from holdfast.core.options.policy import DEFAULT_TIMEOUT, OnCrash, OnShutdown, Policy
from holdfast.core.options.retry import Retry
from holdfast.core.options.unique import Unique
from holdfast.core.payload.codec import to_json
from holdfast.core.payload.signature import Signature

__all__ = ["Executor", "TaskDefinition", "TaskOptions", "define"]

Executor: TypeAlias = Literal["process", "thread", "async"]


class TaskOptions(TypedDict, total=False):
    """The options of `@app.task`; what is left out has its default.

    The texts below each are what `docs/reference/task-options.md` says about it.
    """

    version: int
    """Workers know a task by name and version: raise it when old calls must not reach new code."""
    queue: str
    """Where its calls wait, and which workers serve them (`holdfast worker -q`)."""
    priority: int
    """1 (first) to 100 (last) within a queue; older calls first among equals."""
    retry: Retry | int | None
    """Run it again after a failure: a number of times, or a `Retry`. None: never."""
    timeout: Span | None
    """How long one attempt may run; then its code is ended. None: indefinitely."""
    max_heartbeat_interval: Span | None
    """End it as STALLED if it does not call `current_task().heartbeat()` this often."""
    on_shutdown: OnShutdown
    """When its worker stops and the grace is over: run it again elsewhere ("resubmit"), leave it
    STALLED ("stop"), or let the worker wait for it ("continue")."""
    on_crash: OnCrash
    """When its process or its worker dies: run it again ("retry"), or leave it STALLED
    ("stall")."""
    max_crashes: int
    """How many times that may happen before it is FAILED."""
    at_most_once: bool
    """Start it once and never again by itself; excludes `retry`, and runs in a process alone."""
    executor: Executor | None
    """Where it runs: "process" (the default of a `def`), "thread", or "async" (an `async def`)."""
    max_concurrent: int | None
    """How many of its calls one worker runs at a time."""
    unique: Unique | None
    """At most one live call per key, see `Unique`."""
    limit: Limits | None
    """How many of its calls may run at a time, and begin in a time, in the whole fleet: a `Limit`,
    or a list of them."""
    concurrency_key: str | None
    """Whose turn a call takes: a text made of its arguments, as in "{tenant}". Keys take turns, and
    `Limit(per_key=…)` limits each."""
    dead_letter: bool
    """Whether a call that failed for good is listed among the dead letters."""
    capture_output: bool
    """Whether what it prints and logs is stored with the attempt."""
    good_for: Span | None
    """A call that has not begun so long after its time to run is EXPIRED."""
    tags: Iterable[str]
    """Words to find its calls by."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TaskDefinition:
    """One task: what is called, and how."""

    name: str
    version: int
    function: Callable[..., Any]
    signature: Signature
    queue: str
    priority: int
    policy: Policy
    task_options: str | None
    """The policy as it is stored with every task."""
    executor: Executor
    max_concurrent: int | None
    unique: Unique | None
    limits: tuple[Limit, ...]
    key_template: KeyTemplate | None
    good_for_us: int | None
    tags: tuple[str, ...]
    hooks: TaskHooks = field(default_factory=TaskHooks)

    @property
    def key(self) -> tuple[str, int]:
        """Name and version: what a worker knows a task by."""
        return self.name, self.version

    @property
    def tags_json(self) -> str | None:
        """The tags as they are stored."""
        return to_json(self.tags) if self.tags else None


def define(
    function: Callable[..., Any],
    name: str | None = None,
    *,
    default_timeout: float | None = DEFAULT_TIMEOUT,
    **options: Unpack[TaskOptions],
) -> TaskDefinition:
    """Check a function and its options, and bind them together."""
    if not inspect.isfunction(function):
        raise ConfigError(
            f"{function!r} is not a function: decorate a def or an async def", option="function"
        )
    _refuse_unknown(options)
    name = checks.task_name(_default_name(function) if name is None else name)
    executor = _executor(function, name, options.get("executor"))
    unique = options.get("unique")
    if unique is not None and not isinstance(unique, Unique):
        raise ConfigError(f"unique={unique!r} is not usable: give Unique(…)", option="unique")
    policy = _policy(name, executor, default_timeout, options)
    max_concurrent = options.get("max_concurrent")
    good_for = options.get("good_for")
    template = options.get("concurrency_key")
    return TaskDefinition(
        name=name,
        version=checks.at_least(1, options.get("version", 1), "version"),
        function=function,
        signature=Signature(function, name),
        queue=checks.queue_name(options.get("queue", "default")),
        priority=checks.priority(options.get("priority", 50)),
        policy=policy,
        task_options=policy.encode(),
        executor=executor,
        max_concurrent=(
            None if max_concurrent is None else checks.at_least(1, max_concurrent, "max_concurrent")
        ),
        unique=unique,
        limits=read_limits(options.get("limit")),
        key_template=None if template is None else KeyTemplate(template, function, name),
        good_for_us=None if good_for is None else checks.positive_us(good_for, "good_for"),
        tags=checks.tags(options.get("tags", ())),
    )


def _refuse_unknown(options: TaskOptions) -> None:
    known = TaskOptions.__annotations__
    for name in options:
        if name not in known:
            raise ConfigError(
                f"{name!r} is not an option of a task: use {', '.join(sorted(known))}",
                option=name,
            )


def _default_name(function: Callable[..., Any]) -> str:
    module = function.__module__
    if module == "__main__":
        module = _main_module(function)
    return f"{module}.{function.__qualname__}".replace(".<locals>", "")


def _main_module(function: Callable[..., Any]) -> str:
    # A script that sends is `__main__`; the worker that runs its tasks imports it by its
    # name. Both must call the task the same.
    # (What wraps it may be of another module.)
    names: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    spec, file = names.get("__spec__"), names.get("__file__")
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    return PurePath(file).stem if file else "__main__"


def _executor(function: Callable[..., Any], name: str, asked: Executor | None) -> Executor:
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if asked is None:
        return "async" if is_async else "process"
    choices: tuple[Executor, ...] = get_args(Executor)
    chosen: Executor = checks.choice(asked, choices, "executor")
    if is_async and chosen != "async":
        raise ConfigError(
            f"task {name!r} is an async def and runs on the async executor: leave out "
            f"executor={chosen!r}, or make it a def that calls asyncio.run",
            option="executor",
        )
    if chosen == "async" and not is_async:
        raise ConfigError(
            f"task {name!r} is a def and cannot run on the async executor: make it an "
            "async def, or use executor='thread'",
            option="executor",
        )
    return chosen


def _policy(
    name: str, executor: Executor, default_timeout: float | None, options: TaskOptions
) -> Policy:
    on_shutdowns: tuple[OnShutdown, ...] = get_args(OnShutdown)
    on_crashes: tuple[OnCrash, ...] = get_args(OnCrash)
    policy = Policy(
        retry=Retry.of(options.get("retry")),
        timeout=_seconds(options.get("timeout", default_timeout), "timeout"),
        max_heartbeat_interval=_seconds(
            options.get("max_heartbeat_interval"), "max_heartbeat_interval"
        ),
        on_shutdown=checks.choice(
            options.get("on_shutdown", "resubmit"), on_shutdowns, "on_shutdown"
        ),
        on_crash=checks.choice(options.get("on_crash", "retry"), on_crashes, "on_crash"),
        max_crashes=checks.at_least(1, options.get("max_crashes", 3), "max_crashes"),
        at_most_once=checks.flag(options.get("at_most_once", False), "at_most_once"),
        dead_letter=checks.flag(options.get("dead_letter", True), "dead_letter"),
        capture_output=checks.flag(options.get("capture_output", True), "capture_output"),
    )
    if policy.at_most_once:
        _check_once(name, executor, policy, options)
    return policy


def _check_once(name: str, executor: Executor, policy: Policy, options: TaskOptions) -> None:
    """An at-most-once task must not also ask to be run again."""
    once = f"task {name!r} is at_most_once, which contradicts"
    if executor != "process":
        raise ConfigError(
            f"{once} the {executor} executor: a neighbour's end would end it too; "
            "only executor='process' can promise it",
            option="at_most_once",
        )
    if policy.max_retries > 0:
        raise ConfigError(f"{once} retry={policy.max_retries}: leave out retry", option="retry")
    for name_, value, remedy in (
        ("on_crash", "retry", "'stall'"),
        ("on_shutdown", "resubmit", "'stop' or 'continue'"),
    ):
        if options.get(name_) == value:
            raise ConfigError(
                f"{once} {name_}={value!r}: leave it out, or use {remedy}", option=name_
            )


def _seconds(value: Span | None, name: str) -> float | None:
    return None if value is None else checks.positive_us(value, name) / 1_000_000
