"""What the template calls of the operating system, as it was before user code was imported.

gevent's `monkey.patch_all()` replaces functions of the standard library by its own. A child that
is forked by gevent's `os.fork` is also reaped by gevent, behind our back; and gevent's `poll` would
run its event loop, and whatever the application has put there, inside the template.

Owns these few names. Imported before the application is; must import none of its code.
"""

from __future__ import annotations

import os
import select
import signal as signals
import sys

fork = os.fork
posix_spawn = os.posix_spawn
wait4 = os.wait4
waitid = getattr(os, "waitid", None)
poll = select.poll
signal = signals.signal


def after_fork() -> None:
    """In a child: do for gevent what its own `fork` would have done."""
    if "gevent.hub" in sys.modules:
        sys.modules["gevent.hub"].reinit()
