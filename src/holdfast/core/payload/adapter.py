"""How types that JSON and msgspec do not know travel as JSON.

Owns the two hooks, one per direction, and the list of what they cover: paths, pydantic
models, subclasses of plain scalars, a `TaskResult` (`{"ok": …}` or `{"err": …}`), and a `Secret`
(`{"$secret": …}`), of which no error shows the value.
pydantic is recognised by its methods and never imported. Types travel by annotation: no
class name is ever written or read.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any, get_args, get_origin

import msgspec

from holdfast.core.result import TaskError, TaskResult
from holdfast.core.secret import MARK, Secret

__all__ = ["adapts", "from_plain", "is_secret", "to_plain"]


def to_plain(value: Any) -> Any:
    """The plain form of a value msgspec cannot encode; TypeError if there is none."""
    if isinstance(value, PurePath):
        return os.fspath(value)
    if _is_pydantic(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, Secret):
        return {MARK: value.reveal()}
    if isinstance(value, TaskResult):
        return {"ok": value.ok_value} if value.is_ok else {"err": value.err_value}
    # numpy's float64 is a float, Django's SafeString a str: the plain value is meant.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(type(value).__qualname__)


def from_plain(kind: type[Any], value: Any) -> Any:
    """Build a `kind` from its plain form; ValueError or TypeError if it does not fit."""
    if _is_result(kind):
        return _result(kind, value)
    if is_secret(kind):
        return _secret(kind, value)
    if kind is object:
        return value
    if issubclass(kind, PurePath):
        if not isinstance(value, str):
            raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
        return kind(value)
    if _is_pydantic(kind):
        # As JSON, not as Python data: a strict model takes a datetime's text only from JSON.
        return kind.model_validate_json(msgspec.json.encode(value))
    for plain in (str, int, float):
        if issubclass(kind, plain) and type(value) is plain:
            return kind(value)
    raise TypeError(f"Cannot build `{kind.__qualname__}` from JSON")


def adapts(kind: Any) -> bool:
    """Whether `from_plain` can build this type."""
    if _is_result(kind) or is_secret(kind):
        return True
    return isinstance(kind, type) and (
        kind is object or _is_pydantic(kind) or issubclass(kind, PurePath | str | int | float)
    )


def _is_result(kind: Any) -> bool:
    return kind is TaskResult or get_origin(kind) is TaskResult


def is_secret(kind: Any) -> bool:
    """Whether an annotation is `Secret` or `Secret[…]`."""
    return kind is Secret or get_origin(kind) is Secret


def _secret(kind: Any, value: Any) -> Secret[Any]:
    if not isinstance(value, dict) or value.keys() != {MARK}:
        raise TypeError(f'Expected a Secret: give `Secret(…)`, in JSON `{{"{MARK}": …}}`')
    parts = get_args(kind)
    try:
        return Secret(_converted(value[MARK], parts[0] if parts else Any))
    except (TypeError, ValueError, msgspec.MsgspecError):
        pass
    # Not inside the handler: what does not fit must not be shown as the cause.
    raise TypeError("Expected a Secret of another type")


def _result(kind: Any, value: Any) -> TaskResult[Any, Any]:
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"ok", "err"}:
        raise TypeError("Expected a TaskResult: an object with `ok` or `err`")
    if "err" in value:
        return TaskResult(err=_converted(value["err"], TaskError))
    parts = get_args(kind)
    return TaskResult(ok=_converted(value["ok"], parts[0] if parts else Any))


def _converted(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, dec_hook=from_plain, str_keys=True)


def _is_pydantic(kind: type[Any]) -> bool:
    return hasattr(kind, "model_validate_json") and hasattr(kind, "model_dump")
