"""Digests of texts, by which the same is known again.

`hashlib` is loaded when the first one is made: with OpenSSL it takes 3.5 MB in each process, and
most processes of a worker never make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from hashlib import _Hash

__all__ = ["hex_digest"]

_sha256: Callable[[bytes], _Hash] | None = None


def hex_digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    global _sha256
    if _sha256 is None:
        from hashlib import sha256

        _sha256 = sha256
    return _sha256(text.encode()).hexdigest()
