"""What many open pages ask for alike: asked of the store once, and kept for a moment.

Ten people who watch one list ask the same every two seconds. Counts that look at thousands of
entries, and the series of charts, are the same for all of them; so an app's store is asked for each
at most once in a moment, however many pages are open. Nothing here depends on who asks. Whatever a
visitor does makes this process forget all of it, so that the next page shows what became of it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from holdfast.app import Holdfast

__all__ = ["FRESH_S", "forget", "shared", "spared"]

FRESH_S: float = 1.9
"""Just less than a page waits before it asks again."""
_SPARED: Final = 50
_DEAR_S: Final = 0.02
_LONGEST_S: Final = 30.0
_MOST: Final = 200
T = TypeVar("T")

_kept: WeakKeyDictionary[Holdfast, dict[Hashable, tuple[float, Any]]] = WeakKeyDictionary()
"""Of each app, until when an answer holds, and the answer."""


async def shared(
    app: Holdfast, key: Hashable, ask: Callable[[], Awaitable[T]], *, times: float = 1.0
) -> T:
    """The answer, as it was a moment ago; `key` says everything that it depends on.

    What is dear to ask for is kept several `times` as long.
    """
    return await _kept_for(app, key, ask, least=times * FRESH_S)


async def spared(app: Holdfast, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, asked for anew unless that takes long.

    A filter that fits hardly anything looks at tens of thousands of tasks. Its answer is kept for
    fifty times as long as it took, so that no question costs the database more than a fiftieth of
    its time, whoever watches it, and less the busier it is.
    """
    return await _kept_for(app, key, ask, least=0.0)


async def _kept_for(
    app: Holdfast, key: Hashable, ask: Callable[[], Awaitable[T]], *, least: float
) -> T:
    kept = _kept.setdefault(app, {})
    began = time.monotonic()
    found = kept.get(key)
    if found is not None and began < found[0]:
        return cast("T", found[1])
    answer = await ask()
    now = time.monotonic()
    long = min(_SPARED * (now - began), _LONGEST_S) if now - began > _DEAR_S else 0.0
    if (lasts := max(least, long if FRESH_S else 0.0)) > 0:
        for old in [name for name, (until, _) in kept.items() if until < now]:
            del kept[old]
        if len(kept) >= _MOST:
            kept.clear()
        kept[key] = (now + lasts, answer)
    return answer


def forget(app: Holdfast) -> None:
    """Something was done: ask again."""
    _kept.pop(app, None)
