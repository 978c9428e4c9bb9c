"""What makes two sends the same send.

Owns the `enqueue_sha` of a task. A send may be repeated under its id when its answer was
lost; the repetition is recognised by this digest, and anything else under the same id is a
`PayloadMismatch`. So it covers what the caller asked for, and nothing that differs between
two tries: not the time of sending, not the machine.
"""

from __future__ import annotations

from hashlib import sha256

from holdfast.core.payload.codec import to_json

__all__ = ["Fingerprinter"]


class Fingerprinter:
    """Digests of sends that differ in their arguments only, so the rest is encoded once.

    What is digested is one JSON array of all that was asked for. Give `good_until` only if
    the caller did: a deadline computed from `good_for` moves with the clock.
    """

    __slots__ = ("_head", "_tail")

    def __init__(
        self,
        *,
        task_name: str,
        version: int,
        queue_name: str,
        priority: int,
        delay_us: int | None = None,
        run_at: int | None = None,
        good_until: int | None = None,
        good_for_us: int | None = None,
        task_options: str | None = None,
        tags: str | None = None,
    ) -> None:
        before = (task_name, version, queue_name, priority)
        after = (delay_us, run_at, good_until, good_for_us, task_options, tags)
        self._head = to_json(before)[:-1]
        self._tail = to_json(after)[1:-1]

    def __call__(self, args: str, kwargs: str, unique_key: str | None = None) -> str:
        """The digest of one send: 64 hex digits."""
        arguments = to_json((args, kwargs))[1:-1]
        key = "null" if unique_key is None else to_json(unique_key)
        return sha256(f"{self._head},{arguments},{self._tail},{key}]".encode()).hexdigest()
