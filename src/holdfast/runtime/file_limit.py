"""How many files a worker may have open (`ulimit -n`), and how many it needs.

Owns the check at the start: a worker that runs out of descriptors later cannot make children, or
reach its database. The soft limit is raised as far as is needed and allowed; children and what they
execute keep the limit that the worker was started with.
"""

from __future__ import annotations

import resource
from typing import Final

from holdfast.core.errors import ConfigError

_OWN: Final = 48
"""Of the supervisor itself: its database, its pipes, what it opens for a moment."""
_COMFORT: Final = 160
_PER_CHILD: Final = 4


def ensure(children: int) -> None:
    """Raise the limit to what so many children need; `ConfigError` if that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed, comfortable = _number(soft), _COMFORT + _PER_CHILD * children
    if allowed < comfortable:
        raised = min(comfortable, _number(hard))
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            allowed = raised
        except (ValueError, OSError):
            # Not even up to the hard limit: some sandboxes.
            pass
    needed = _OWN + _PER_CHILD * children
    if allowed < needed:
        fitting = max(0, allowed - _OWN) // _PER_CHILD
        raise ConfigError(
            f"this process may have {allowed} files open, and a worker with {children} child "
            f"process(es) needs {needed}: raise the limit (`ulimit -n {needed}`, LimitNOFILE= of a "
            "systemd unit, --ulimit nofile= of a container), or lower --concurrency; at most "
            f"{fitting} child process(es) fit into it",
            option="concurrency",
        )


def _number(limit: int) -> int:
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit
