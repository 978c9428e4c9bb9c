"""Digests, and what a child need not load for them."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256

from holdfast.core.digest import hex_digest

OF_A_CHILD = (
    "from holdfast import Holdfast, current_task\n"
    "import holdfast.runtime.child.child_main, holdfast.runtime.child.process_child\n"
    "import holdfast.runtime.child.template, holdfast.runtime.child.load_app, sys\n"
    "print([name for name in ('hashlib', 'asyncio', 'ssl') if name in sys.modules])"
)


def test_a_digest_is_sha_256_in_hexadecimal() -> None:
    for text in ("", "zwölf", "x" * 10_000):
        assert hex_digest(text) == sha256(text.encode()).hexdigest()


def test_a_process_that_runs_tasks_loads_neither_openssl_nor_an_event_loop() -> None:
    """Together they take 5 MB, and a third of the time that a template needs to come up."""
    said = subprocess.run(
        [sys.executable, "-c", OF_A_CHILD], check=True, capture_output=True, text=True
    )
    assert said.stdout.strip() == "[]"
