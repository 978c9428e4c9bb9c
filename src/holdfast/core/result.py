"""What a task gave: a value, or an error described as data.

Owns `TaskResult` and `TaskError`, the values that cross from the process that ran the code
to the one that asks. An error is text and plain data, never a live exception, so reading
one imports nothing and runs nothing. How they are written as JSON is in `failure`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, Never, NoReturn, TypeVar, overload

from holdfast.core.error_code import ErrorCode
from holdfast.core.text import clean

__all__ = ["TaskError", "TaskResult"]

MESSAGE_LIMIT: Final = 8_000
TRACEBACK_LIMIT: Final = 40_000
CAUSE_LIMIT: Final = 1_000
CAUSES_LIMIT: Final = 10
"""Bounds in characters (and causes): one error stays well under 64 KiB of ASCII text."""

_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_RAISED: Final = frozenset(
    {ErrorCode.UNHANDLED_EXCEPTION, ErrorCode.TASK_EXITED, ErrorCode.KEYBOARD_INTERRUPT}
)
"""Codes that say no more than that there was an exception: its type says more."""
_RESERVED: Final = frozenset(code.value for code in ErrorCode)


@dataclass(frozen=True, slots=True, init=False)
class TaskError:
    """Why a task did not succeed.

    A task returns one to fail on purpose, with a code of its own:

        return TaskResult(err=TaskError("OUT_OF_STOCK", "none left", data={"sku": sku}))

    Codes of `ErrorCode` are Holdfast's and are refused here, so that a code always tells
    who gave it. `exception`, `traceback` and `causes` are filled in for errors that began
    as an exception.
    """

    error_code: str
    """The author's code, or a member of `ErrorCode`."""
    message: str
    data: Any
    """What the author attached: anything that can be written as JSON."""
    exception: str | None
    """Qualified name of the exception's type, as text."""
    traceback: str | None = field(repr=False)
    causes: tuple[str, ...]
    """The chain of `__cause__` and `__context__`, nearest first, one line each."""

    def __init__(self, error_code: str | Enum, message: str = "", *, data: Any = None) -> None:
        code = error_code.value if isinstance(error_code, Enum) else error_code
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            raise ValueError(
                f"error code {code!r} is not usable: give 1 to 100 of the characters "
                "A-Z a-z 0-9 _ . : -"
            )
        if code in _RESERVED:
            raise ValueError(
                f"error code {code!r} is reserved for Holdfast: choose a code of your own, "
                f"for example 'MY_{code}'"
            )
        self._fill(code, message, data)

    @classmethod
    def ours(
        cls,
        code: ErrorCode,
        message: str,
        *,
        data: Any = None,
        exception: str | None = None,
        traceback: str | None = None,
        causes: tuple[str, ...] = (),
    ) -> TaskError:
        """An error with a reserved code; for Holdfast's own use."""
        return cls.stored(code, message, data, exception, traceback, causes)

    @classmethod
    def stored(
        cls,
        code: str,
        message: str,
        data: Any,
        exception: str | None,
        traceback: str | None,
        causes: tuple[str, ...],
    ) -> TaskError:
        """An error read back: its code was checked when it was made, perhaps by other code."""
        self = cls.__new__(cls)
        known = ErrorCode(code) if code in _RESERVED else code
        self._fill(known, message, data, exception, traceback, causes)
        return self

    def __post_init__(self) -> None:
        # Called where one is read back as an argument, which runs no `__init__`.
        self._fill(
            ErrorCode(self.error_code) if self.error_code in _RESERVED else self.error_code,
            self.message,
            self.data,
            self.exception,
            self.traceback,
            tuple(self.causes),
        )

    def _fill(
        self,
        code: str,
        message: str,
        data: Any,
        exception: str | None = None,
        traceback: str | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("error_code", code)
        put("message", clean(str(message), MESSAGE_LIMIT))
        put("data", data)
        put("exception", None if exception is None else clean(exception, CAUSE_LIMIT))
        put("traceback", None if traceback is None else clean(traceback, TRACEBACK_LIMIT))
        put("causes", tuple(clean(cause, CAUSE_LIMIT) for cause in causes[:CAUSES_LIMIT]))

    @property
    def is_ours(self) -> bool:
        """True when Holdfast gave the code, False when the task's author did."""
        return isinstance(self.error_code, ErrorCode)

    @property
    def type_name(self) -> str | None:
        """The exception's type as a traceback names it: `KeyError`, `shop.errors.OutOfStock`."""
        if self.exception is None:
            return None
        module, dot, name = self.exception.partition(".")
        if module in ("builtins", "__main__"):
            return name
        # Ours are imported from `holdfast`, wherever they are defined.
        return self.exception.rpartition(".")[2] if dot and module == "holdfast" else self.exception

    def __str__(self) -> str:
        raised = self.error_code in _RAISED
        what = (self.type_name if raised else None) or str(self.error_code)
        return f"{what}: {self.message}" if self.message else what


T_co = TypeVar("T_co", covariant=True)
E_co = TypeVar("E_co", bound=TaskError, covariant=True)
V = TypeVar("V")
F = TypeVar("F", bound=TaskError)


class _Absent(Enum):
    ABSENT = 0


_ABSENT: Final = _Absent.ABSENT


class TaskResult(Generic[T_co, E_co]):
    """Exactly one of a value (`ok`) and an error (`err`).

        >>> TaskResult(ok=3).is_ok
        True

    `ok` and `err` give None for the side that is absent; `ok_value` and `err_value` raise
    ValueError instead, and are typed without None.
    """

    __slots__ = ("_err", "_ok")
    __match_args__ = ("ok", "err")

    _ok: T_co | _Absent
    _err: E_co | None

    @overload
    def __init__(self: TaskResult[V, Never], *, ok: V) -> None: ...

    @overload
    def __init__(self: TaskResult[Never, F], *, err: F) -> None: ...

    def __init__(self, *, ok: Any = _ABSENT, err: Any = None) -> None:
        if (ok is _ABSENT) == (err is None):
            raise TypeError("TaskResult takes exactly one of ok=… and err=…")
        if err is not None and not isinstance(err, TaskError):
            raise TypeError(f"TaskResult(err=…) takes a TaskError, not {type(err).__name__}")
        object.__setattr__(self, "_ok", ok)
        object.__setattr__(self, "_err", err)

    @property
    def is_ok(self) -> bool:
        """True when there is a value (which may be None)."""
        return self._err is None

    @property
    def is_err(self) -> bool:
        """True when there is an error."""
        return self._err is not None

    @property
    def ok(self) -> T_co | None:
        """The value, or None if this is an error."""
        return None if self._ok is _ABSENT else self._ok

    @property
    def err(self) -> E_co | None:
        """The error, or None if there is a value."""
        return self._err

    @property
    def ok_value(self) -> T_co:
        """The value; raises ValueError if this is an error."""
        if self._ok is _ABSENT:
            raise ValueError(f"this TaskResult holds an error: {self._err}")
        return self._ok

    @property
    def err_value(self) -> E_co:
        """The error; raises ValueError if there is a value."""
        if self._err is None:
            raise ValueError(f"this TaskResult holds a value: {self._ok!r}")
        return self._err

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a TaskResult cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a TaskResult cannot be changed")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskResult):
            return NotImplemented
        return bool(self._ok == other._ok and self._err == other._err)

    __hash__ = None  # type: ignore[assignment]  # values need not be hashable

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.is_ok, self._ok if self.is_ok else self._err)

    def __repr__(self) -> str:
        return f"TaskResult(ok={self._ok!r})" if self.is_ok else f"TaskResult(err={self._err!r})"


def _rebuild(is_ok: bool, content: Any) -> TaskResult[Any, Any]:
    return TaskResult(ok=content) if is_ok else TaskResult(err=content)
