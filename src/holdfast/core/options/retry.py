"""When a failed task runs again.

Owns the retry policy: how often, how long to wait, and after which failures. It draws no
random number itself and knows no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, get_args

from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import ConfigError
from holdfast.core.moment import span_us

__all__ = ["UNPLANNED_RETRIES", "Backoff", "Retry", "RetryOn", "retries_granted"]

Backoff: TypeAlias = Literal["constant", "linear", "exponential", "exponential_jitter"]
RetryOn: TypeAlias = type[BaseException] | str
"""An exception class (subclasses included) or an error code."""

UNPLANNED_RETRIES: Final = 3
"""How many times a task without a retry policy may raise `RetryLater`."""
_BACKOFFS: Final = get_args(Backoff)
_MOST_RETRIES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Retry:
    """Run a failed task again, up to `max_retries` times.

        Retry(3, delay=10, backoff="exponential_jitter", on=(TimeoutError, "RATE_LIMITED"))

    Before retry n = 1, 2, … it waits: `constant` d; `linear` d·n; `exponential` d·2ⁿ⁻¹;
    `exponential_jitter` a random time between 0 and d·2ⁿ⁻¹. Each is capped at `max_delay`,
    before the draw. Without `delay` the retry is immediate.

    `on` and `never_on` take exception classes and error codes; `never_on` wins, and what is
    not listed fails at once. The default lists every exception, but no error code: a task
    that returns `TaskResult(err=…)` has decided. A timeout counts as listed, unless
    "TASK_TIMEOUT" is in `never_on`.
    """

    max_retries: int
    delay: float | None = None
    backoff: Backoff = "exponential"
    max_delay: float = 3600
    on: tuple[RetryOn, ...] = (Exception,)
    never_on: tuple[RetryOn, ...] = ()

    def __post_init__(self) -> None:
        count: object = self.max_retries
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ConfigError(
                f"Retry(max_retries={count!r}) must be a whole number, 0 or more",
                option="max_retries",
            )
        if count > _MOST_RETRIES:
            raise ConfigError(
                f"Retry(max_retries={count}) is too many: at most {_MOST_RETRIES:,}",
                option="max_retries",
            )
        if self.backoff not in _BACKOFFS:
            raise ConfigError(
                f"Retry(backoff={self.backoff!r}) is unknown: use one of {', '.join(_BACKOFFS)}",
                option="backoff",
            )
        if self.delay is not None:
            object.__setattr__(self, "delay", span_us(self.delay, option="delay") / 1_000_000)
        object.__setattr__(
            self, "max_delay", span_us(self.max_delay, option="max_delay") / 1_000_000
        )
        object.__setattr__(self, "on", _listing(self.on, "on"))
        object.__setattr__(self, "never_on", _listing(self.never_on, "never_on"))

    @classmethod
    def of(cls, retry: Retry | int | None) -> Retry | None:
        """Read the `retry` option of a task: a policy, a number of retries, or nothing."""
        if retry is None or isinstance(retry, Retry):
            return retry
        if type(retry) is int:
            return cls(retry)
        raise ConfigError(
            f"retry={retry!r} is not a retry policy: give a number of retries or Retry(…)",
            option="retry",
        )

    def delay_for(self, n: int, random: Callable[[], float]) -> float | None:
        """Seconds to wait before retry n = 1, 2, …; None means at once.

        `random` gives a number from 0 to below 1, as `random.random` does.
        """
        if self.delay is None:
            return None
        base = self.delay
        match self.backoff:
            case "constant":
                delay = base
            case "linear":
                delay = base * n
            case "exponential" | "exponential_jitter":
                # 2⁶⁴ seconds are beyond any cap, and a larger power would overflow a float.
                delay = base * 2.0 ** min(n - 1, 64)
        delay = min(delay, self.max_delay)
        return delay * random() if self.backoff == "exponential_jitter" else delay

    def lists_exception(self, error: BaseException, code: str) -> bool:
        """Whether a task that raised `error`, stored under `code`, may be retried."""
        if _matches(self.never_on, error, code):
            return False
        return _matches(self.on, error, code)

    def lists_code(self, code: str) -> bool:
        """Whether a task that returned an error with this code may be retried."""
        return code in self.on and code not in self.never_on

    @property
    def lists_timeout(self) -> bool:
        """Whether a task that ran into its `timeout` may be retried."""
        return ErrorCode.TASK_TIMEOUT not in self.never_on

    def as_dict(self) -> dict[str, Any]:
        """Plain data, leaving out defaults. Exception classes become names, for display."""
        return {
            each.name: list(map(_name, value)) if isinstance(value, tuple) else value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Retry:
        """A policy read back. Its classes are names now: only the child that runs the code
        has the classes, and only the child asks what is listed."""
        return cls(**{each.name: plain[each.name] for each in fields(cls) if each.name in plain})


def _listing(items: object, option: str) -> tuple[RetryOn, ...]:
    if isinstance(items, str | type):
        items = (items,)
    if not isinstance(items, tuple | list):
        raise ConfigError(
            f"Retry({option}={items!r}) must be a tuple of exception classes and error codes",
            option=option,
        )
    for item in items:
        if isinstance(item, type) and issubclass(item, BaseException):
            continue
        if not isinstance(item, str) or not item:
            raise ConfigError(
                f"Retry({option}=…) takes exception classes and error codes, not {item!r}",
                option=option,
            )
        if item == ErrorCode.WORKER_CRASHED:
            raise ConfigError(
                f"Retry({option}=…) does not govern crashes: use on_crash and max_crashes",
                option=option,
            )
    return tuple(items)


def retries_granted(retry_count: int, max_retries: int) -> int:
    """Of how many retries these are the first `retry_count`.

    More than its policy has, a task gets only by `RetryLater`, and without a policy.
    """
    return UNPLANNED_RETRIES if retry_count > max_retries else max_retries


def _matches(listing: tuple[RetryOn, ...], error: BaseException, code: str) -> bool:
    return any(
        item == code if isinstance(item, str) else isinstance(error, item) for item in listing
    )


def _name(item: RetryOn) -> str:
    return item if isinstance(item, str) else f"{item.__module__}.{item.__qualname__}"
