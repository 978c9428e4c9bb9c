"""Reference pages made from the code: options, settings, errors.

Owns the reading of a class's fields with the texts below them, and the tables made of these. A
field without a text is a mistake: what cannot be explained in a line should not be an option.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from string import Template
from typing import Any, NamedTuple

from holdfast.client.config import Config
from holdfast.client.sending.send_options import CallOptions
from holdfast.core import errors
from holdfast.core.error_code import ErrorCode, ErrorFamily
from holdfast.core.options.definition import TaskOptions, define
from holdfast.core.options.policy import Policy
from holdfast.core.options.retention import Retention
from holdfast.core.options.retry import Retry
from holdfast.core.options.setting_text import variable
from holdfast.core.options.unique import Unique
from holdfast.runtime.options import WorkerOptions

_TYPES = {
    "Span": 'seconds, `timedelta` or text such as `"90s"`',
    "OnShutdown": '`"resubmit"`, `"stop"`, `"continue"`',
    "OnCrash": '`"retry"`, `"stall"`',
    "Executor": '`"process"`, `"thread"`, `"async"`',
    "SqliteDriver": '`"apsw"`, `"sqlite3"`',
    "Backoff": '`"constant"`, `"linear"`, `"exponential"`, `"exponential_jitter"`',
    "OnConflict": '`"return"`, `"replace"`, `"debounce"`, `"raise"`',
}


class Entry(NamedTuple):
    """One field of a class, as its source has it."""

    name: str
    kind: str
    text: str


def entries(cls: type) -> Iterator[Entry]:
    """The annotated fields of a class and the text below each."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    for at, node in enumerate(tree.body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        below = tree.body[at + 1] if at + 1 < len(tree.body) else None
        text = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            text = " ".join(str(below.value.value).split())
        yield Entry(node.target.id, ast.unparse(node.annotation), text)


def task_options() -> str:
    """The page of what a task, and one send, may be told."""
    rows = [
        [f"`{name}`", _kind(kind), _default(_task_default(name)), text]
        for name, kind, text in entries(TaskOptions)
    ]
    sends = [[f"`{name}`", _kind(kind), text] for name, kind, text in entries(CallOptions)]
    return _filled(
        _TASK_OPTIONS,
        options=_table(["option", "type", "default", "meaning"], rows),
        sends=_table(["option", "type", "meaning"], sends),
        retry=_dataclass(Retry, _RETRY),
        unique=_dataclass(Unique, _UNIQUE),
    )


_TASK_OPTIONS = """\
# Task options

$made

What `@app.task(…)` takes. The first argument, or `name=`, is the name that is stored with every
call; without one it is `module.function`. A wrong or contradicting option is a `ConfigError`
where it is written.

```python
from pathlib import Path

from holdfast import Holdfast, Retry

app = Holdfast("sqlite:///images.db")


@app.task("resize", queue="images", priority=10, retry=Retry(3, delay=10))
def resize(path: Path, width: int = 640) -> str:
    return f"{path.stem}-{width}{path.suffix}"
```

$options

The default of `timeout` is the app's setting `default_timeout` (`HOLDFAST_DEFAULT_TIMEOUT`).

**Arguments and results** travel as JSON, and come back as the types that the function's annotations
name: datetimes with a time zone, dates, UUIDs, paths, bytes, Decimals, enums, sets, tuples,
dataclasses, TypedDicts, pydantic models. What has no annotation must be plain JSON data: a value
that would come back as another type is refused with a `PayloadError` that says where it is.

## One send

`task.options(…)` is the same task, sent differently; `app.options(…)` is for sends by name.

```python
resize.options(queue="urgent", delay=60, tags=["holiday"]).send(Path("a.png"), width=320)
```

$sends

## Retry

$retry

Before retry n = 1, 2, … it waits: `constant` d, `linear` d·n, `exponential` d·2ⁿ⁻¹,
`exponential_jitter` a random time up to d·2ⁿ⁻¹.
[Retries and timeouts](../howto/retries-and-timeouts.md) has examples.

## Unique

$unique

[Uniqueness and idempotency](../howto/uniqueness-and-idempotency.md) has examples.
"""

_RETRY = {
    "max_retries": "How many runs there may be after the first.",
    "delay": "Seconds before a retry; None: at once.",
    "backoff": "How the delay grows.",
    "max_delay": "The longest delay, in seconds.",
    "on": "Exception classes and error codes after which it is retried. A timeout always counts.",
    "never_on": "Those after which it is not, whatever `on` says.",
}
_UNIQUE = {
    "key": "The key; None: the arguments as they are sent.",
    "on_conflict": "What a send does when the key is held: return the holder's handle, give it the "
    "new arguments, put it off to the new time, or raise `UniqueConflict`.",
    "period": "One for each key and period; periods are whole multiples since 1970 UTC.",
    "until": 'When the key is free again: when the task has `"started"`, `"ended"` (default) or '
    'been `"deleted"` (the default with a period, and then the only choice).',
}


def settings() -> str:
    """The page of the settings of the app and of the worker."""
    of_worker = {name for name, _, _ in entries(WorkerOptions)}
    of_app = {name: text for name, _, text in entries(Config) if name != "store"}
    flags = _worker_flags()
    worker_rows = []
    for name, _, text in entries(WorkerOptions):
        said = (text or of_app[name]).removeprefix("Workers: ")
        default = (
            "one per processor" if name == "concurrency" else _default(_of(WorkerOptions, name))
        )
        keyword = f"`{name}` *" if name in of_app else f"`{name}`"
        cells = [keyword, flags.get(name, ""), f"`{variable(name)}`", default, _capital(said)]
        worker_rows.append(cells)
    return _filled(
        _SETTINGS,
        app=_table(
            ["keyword", "variable", "default", "meaning"],
            (
                [f"`{name}`", f"`{variable(name)}`", _default(_of(Config, name)), text]
                for name, text in of_app.items()
                if name not in of_worker
            ),
        ),
        worker=_table(["keyword", "flag", "variable", "default", "meaning"], worker_rows),
        retention=_table(
            ["kind", "kept"],
            (
                [f"`{each.name}`", "for ever" if each.default is None else f"{each.default}"]
                for each in fields(Retention)
            ),
        ),
    )


_SETTINGS = """\
# Settings

$made

Durations are seconds. A flag wins over a keyword, a keyword over the environment, the environment
over the default.

## The app

Keywords of `Holdfast(url, …)`.

$app

## The worker

Keywords of `app.worker(…)` and flags of `holdfast worker`; those marked * are keywords of
`Holdfast(…)` too.

$worker

## Retention

How long records are kept after they ended: `Retention(tasks="30d", …)`, or `--retention
tasks=30d,dead=never`. `dead` is for tasks among the dead letters, `logs` for what attempts printed.

$retention
"""


def error_page() -> str:
    """The page of exceptions and error codes."""
    codes: list[str] = []
    for family in ErrorFamily:
        found = [code for code in ErrorCode if code.family is family]
        codes += ["", f"### {family.value.capitalize()}", "", _FAMILIES[family], ""]
        codes += _table(["code", "meaning"], ([f"`{code}`", code.meaning] for code in found))
    return _filled(
        _ERRORS,
        tree=_tree(),
        classes=_table(
            ["exception", "attributes", "meaning"],
            ([f"`{cls.__name__}`", _attributes(cls), _first_sentence(cls)] for cls in _classes()),
        ),
        codes=codes[1:],
    )


_ERRORS = """\
# Errors

$made

All exceptions are below `HoldfastError` and are imported from `holdfast`. Each says what happened,
to which task, and what to do, and has its facts as attributes. `retryable` is True where the same
call may succeed later, unchanged.

```text
$tree
```

$classes

`RetryLater`, `Snooze` and `Abort` are raised by a task to steer itself; they are no errors, and not
below `HoldfastError`.

## What a failed task says

`handle.get()` raises one of the five exceptions below `TaskNotCompleted`; `handle.outcome()` gives
the same as a value. Both have a `TaskError`: `error_code`, `message`, `data`, and, for what began
as an exception, `exception` (its type), `traceback` and `causes`.

```python
from holdfast import Holdfast, TaskFailed

app = Holdfast("sqlite:///shop.db")


@app.task
def price(item: str) -> int:
    return {"kelp": 3}[item]


handle = price.send("coral")
app.worker().run_until_idle()
try:
    handle.get(timeout=5)
except TaskFailed as failed:
    print(failed)  # task …price (…) failed: KeyError: 'coral'
    assert failed.error is not None
    print(failed.error.error_code)  # UNHANDLED_EXCEPTION
    print(failed.error.type_name)  # KeyError
    print(failed.traceback)
app.close()
```

## Error codes

A task that ended otherwise than COMPLETED has a code: one of these, or one that the task's author
chose (`TaskResult(err=TaskError("OUT_OF_STOCK"))`), which never equals one of these.

$codes
"""

_FAMILIES = {
    ErrorFamily.OPERATIONAL: "The code, or the machine it ran on, broke down.",
    ErrorFamily.CONTRACT: "Arguments or result are not what the task's signature promises.",
    ErrorFamily.RETRIEVAL: "The task may well have succeeded; its stored result could not be read.",
    ErrorFamily.OUTCOME: "Nothing broke: the task was ended by a rule or on request.",
}


def _classes() -> list[type[errors.HoldfastError]]:
    public = [getattr(errors, name) for name in errors.__all__]
    order = [line.strip("│├└─ ").split()[0] for line in _tree()]
    return sorted(public, key=lambda cls: order.index(cls.__name__))


def _tree() -> list[str]:
    lines: list[str] = []

    def draw(cls: type, indent: str, branch: str) -> None:
        lines.append(f"{indent}{branch}{cls.__name__}")
        subclasses: list[type] = cls.__subclasses__()
        below = [each for each in subclasses if each.__module__ == errors.__name__]
        deeper = indent + {"": "", "├── ": "│   ", "└── ": "    "}[branch]
        for at, each in enumerate(below):
            draw(each, deeper, "└── " if at == len(below) - 1 else "├── ")

    draw(errors.HoldfastError, "", "")
    return lines


def _attributes(cls: type[errors.HoldfastError]) -> str:
    if cls is errors.HoldfastError:
        return "`retryable`, `call`"
    taken = [name for name in inspect.signature(cls).parameters if name not in ("message", "blame")]
    found = [name for name in taken if name not in ("args", "kwargs")]
    for base in cls.__mro__:
        found += [name for name, value in vars(base).items() if isinstance(value, property)]
    return ", ".join(f"`{name}`" for name in found)


def _first_sentence(cls: type) -> str:
    text = " ".join((cls.__doc__ or "").split())
    return text.split(". ")[0].rstrip(".")


def _task_default(name: str) -> Any:
    if name == "retry":
        return None
    defined = define(lambda: None, "any")
    return getattr(defined, name, None) if hasattr(defined, name) else getattr(Policy(), name, None)


def _of(cls: type, name: str) -> Any:
    found = next(each for each in fields(cls) if each.name == name)
    return found.default if found.default_factory is MISSING else found.default_factory()


def _worker_flags() -> dict[str, str]:
    from holdfast.cli.commands.worker import worker

    return {
        str(option.name): ", ".join(f"`{flag}`" for flag in option.opts) for option in worker.params
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _dataclass(cls: type, texts: dict[str, str]) -> list[str]:
    rows = []
    for entry in entries(cls):
        found = next(each for each in fields(cls) if each.name == entry.name)
        default = "needed" if found.default is MISSING else _default(found.default)
        rows.append([f"`{entry.name}`", _kind(entry.kind), default, texts[entry.name]])
    return _table(["field", "type", "default", "meaning"], rows)


def _kind(annotation: str) -> str:
    parts = [part.strip() for part in annotation.split(" | ")]
    return " or ".join(_TYPES.get(part, f"`{part}`") for part in parts)


def _default(value: Any) -> str:
    if isinstance(value, Retention):
        return "see below"
    if isinstance(value, float) and value.is_integer():
        return f"`{value:.0f}`"
    if value == (Exception,):
        return "`(Exception,)`"
    return f"`{value!r}`"


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows),
    ]


def _filled(template: str, **parts: list[str]) -> str:
    made = "<!-- Written by `make docs` from the code. Do not edit. -->"
    texts = {name: "\n".join(lines) for name, lines in parts.items()}
    return Template(template).substitute(texts, made=made)
