"""`worker`: a wish to stop is heard from the first moment. What a worker does is tested in e2e."""

from __future__ import annotations

import subprocess
import sys

IN_A_CALLBACK = """
import signal, sys, time, weakref
import holdfast.runtime.launch
from holdfast.__main__ import main

class Thing: ...

def launch(*args, **given):
    # The interpreter's own import of a module ends with such a callback.
    thing = Thing()
    kept = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
    del thing
    time.sleep(60)

holdfast.runtime.launch.launch = launch
sys.argv = ["holdfast", "worker", "shop:app"]
main()
"""


def test_a_wish_to_stop_that_comes_inside_a_callback_is_not_lost() -> None:
    said = subprocess.run(
        [sys.executable, "-c", IN_A_CALLBACK],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (said.returncode, said.stdout) == (0, "")
    assert said.stderr == "holdfast worker: stopped before it was at work\n"
