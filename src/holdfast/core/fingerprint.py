"""What makes two sends the same send.

Owns the `enqueue_sha` of a task. A send may be repeated under its id when its answer was
lost; the repetition is recognised by this digest, and anything else under the same id is a
`PayloadMismatch`. So it covers what the caller asked for, and nothing that differs between
two tries: not the time of sending, not the machine.
"""

from __future__ import annotations

from hashlib import sha256

from holdfast.core.payload import to_json

__all__ = ["fingerprint"]


def fingerprint(
    *,
    task_name: str,
    version: int,
    queue_name: str,
    priority: int,
    args: str,
    kwargs: str,
    delay_us: int | None = None,
    run_at: int | None = None,
    good_until: int | None = None,
    good_for_us: int | None = None,
    task_options: str | None = None,
    tags: str | None = None,
    unique_key: str | None = None,
) -> str:
    """The digest of a send: 64 hex digits.

    Give `good_until` only if the caller did: a deadline computed from `good_for` moves with
    the clock.
    """
    asked = (
        task_name,
        version,
        queue_name,
        priority,
        args,
        kwargs,
        delay_us,
        run_at,
        good_until,
        good_for_us,
        task_options,
        tags,
        unique_key,
    )
    return sha256(to_json(asked).encode()).hexdigest()
