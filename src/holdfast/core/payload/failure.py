"""Errors as stored text: from an exception to a `TaskError`, from there to JSON and back.

Owns the JSON of errors. An ended task's `result` column holds, when it is
COMPLETED, the value alone; otherwise the error:

    {"error_code": "OUT_OF_STOCK", "message": "none left", "data": {"sku": 7}}
    {"error_code": "UNHANDLED_EXCEPTION", "message": "…", "exception": "builtins.ValueError",
     "traceback": "Traceback (most recent call last): …", "causes": ["KeyError: 'x'"]}

Absent keys are empty.

Describing an exception must not fail, whatever the exception does: its `str` may raise, its
causes may form a ring. Source lines in tracebacks come from Python's own line cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Final

from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import PayloadError
from holdfast.core.payload.codec import DEFAULT_LIMIT, Raw, decode, encode_value
from holdfast.core.result import CAUSES_LIMIT, TaskError
from holdfast.core.secret import MARK, hide_secrets, secret_texts, without
from holdfast.core.signals import Abort, RetryLater

__all__ = [
    "as_plain",
    "code_of",
    "decode_error",
    "describe",
    "encode_error",
    "secrets_in",
    "summary",
    "unstorable",
    "users_own",
    "without_secrets",
]

_UNLIMITED: Final = 1 << 62

_CODES: Final[dict[type[BaseException], ErrorCode]] = {
    SystemExit: ErrorCode.TASK_EXITED,
    KeyboardInterrupt: ErrorCode.KEYBOARD_INTERRUPT,
    Abort: ErrorCode.ABORTED,
    RetryLater: ErrorCode.RETRY_LATER,
}


def code_of(error: BaseException) -> ErrorCode:
    """The reserved code under which an exception of a task is stored."""
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return code
    return ErrorCode.UNHANDLED_EXCEPTION


def describe(error: BaseException, code: ErrorCode | None = None) -> TaskError:
    """What can be kept of an exception: its type, message, traceback and causes, as text."""
    kind = type(error)
    chain = list(islice(_chain(error), CAUSES_LIMIT + 1))
    return TaskError.ours(
        code or code_of(error),
        _message(error),
        exception=f"{kind.__module__}.{kind.__qualname__}",
        traceback=_traceback(error, chain[-1]),
        causes=tuple(summary(cause) for cause in chain[1:]),
    )


def users_own(trace: TracebackType | None, is_ours: Callable[[str], bool]) -> TracebackType | None:
    """A traceback without the frames at its outer end that come from these files."""
    link = trace
    while link is not None and is_ours(link.tb_frame.f_code.co_filename):
        link = link.tb_next
    return link


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what led to it, nearest first; each once, even in a ring."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        if link.__cause__ is not None:
            link = link.__cause__
        else:
            link = None if link.__suppress_context__ else link.__context__


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as second:  # noqa: BLE001  (the author's __str__ may raise anything)
        return f"(its message cannot be shown: str() raised {type(second).__name__})"


def summary(error: BaseException) -> str:
    """An exception in one line, whatever its `str` does."""
    message = _message(error)
    name = type(error).__qualname__
    return f"{name}: {message}" if message else name


def _traceback(error: BaseException, last: BaseException) -> str:
    import traceback  # here, because a client that only sends never needs it

    # Python formats the whole chain, however long; so it is cut for the moment.
    cause, context, suppressed = last.__cause__, last.__context__, last.__suppress_context__
    try:
        last.__cause__ = last.__context__ = None
        return "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001  (the exception's own code runs in there)
        return f"{summary(error)}\n"
    finally:
        last.__cause__, last.__context__ = cause, context
        last.__suppress_context__ = suppressed


def unstorable(error: PayloadError) -> TaskError:
    """The error of a task whose result was refused by the codec."""
    codes = {
        "unserialisable": ErrorCode.RESULT_NOT_SERIALISABLE,
        "too_large": ErrorCode.RESULT_TOO_LARGE,
        "mismatch": ErrorCode.RESULT_INVALID,
    }
    return TaskError.ours(codes[error.problem], str(error))


def without_secrets(error: TaskError, stored: Sequence[str]) -> TaskError:
    """The same error without the values of the secrets that are in these stored arguments."""
    secrets = secrets_in(stored)
    if not secrets:
        return error
    return TaskError.stored(
        str(error.error_code),
        without(error.message, secrets),
        error.data,
        error.exception,
        None if error.traceback is None else without(error.traceback, secrets),
        tuple(without(cause, secrets) for cause in error.causes),
    )


def secrets_in(stored: Sequence[str]) -> list[str]:
    """The secrets in these stored arguments, as they could stand in a message; longest first."""
    marked = [text for text in stored if MARK in text]
    found = {secret for text in marked for secret in secret_texts(decode(text))}
    return sorted(found, key=len, reverse=True)


def encode_error(error: TaskError, limit: int = DEFAULT_LIMIT) -> str:
    """The JSON of an error; `PayloadError` if the author's `data` cannot be stored."""
    return encode_value(_plain(error), limit, name="error")


def _plain(error: TaskError) -> dict[str, Any]:
    plain: dict[str, Any] = {"error_code": str(error.error_code), "message": error.message}
    if error.data is not None:
        plain["data"] = error.data
    if error.exception is not None:
        plain["exception"] = error.exception
    if error.traceback is not None:
        plain["traceback"] = error.traceback
    if error.causes:
        plain["causes"] = error.causes
    return plain


def as_plain(error: TaskError) -> TaskError:
    """The same error as it is read back: its data plain, its texts within their bounds.

    `PayloadError` if its `data` cannot be stored.
    """
    return decode_error(encode_error(error, _UNLIMITED))


def decode_error(text: str | bytes | Raw) -> TaskError:
    """An error read back; `PayloadError` if the text is none."""
    plain = decode(text, dict[str, Any])
    try:
        return TaskError.stored(
            str(plain["error_code"]),
            str(plain.get("message", "")),
            hide_secrets(plain.get("data")),
            plain.get("exception"),
            plain.get("traceback"),
            tuple(plain.get("causes", ())),
        )
    except (KeyError, TypeError) as error:
        raise PayloadError(f"this is not a stored error: {plain!r:.200}") from error
