"""The private threads on which the async twins run the sync store.

Owns one small executor, as large as the connection pool, made on first use. Never the
event loop's default executor: there, somebody else's slow work would hold up sends, and
ours would hold up theirs. No thread waits with a coroutine that waits for a task.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Offload"]

T = TypeVar("T")


class Offload:
    """A lazily made thread pool."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` on one of the threads."""
        pool = self._pool
        if pool is None:
            pool = self._open()
        return pool.submit(work)

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` on one of the threads and await its result."""
        import asyncio

        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Let what was submitted end, then end the threads."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)

    def _open(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._size, thread_name_prefix="holdfast")
            return self._pool
