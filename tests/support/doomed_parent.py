"""A supervisor that will be killed: starts a template and one busy child, tells, and waits.

python -m tests.support.doomed_parent MODULE:APP KIND TASK [ARGUMENT…]
"""

from __future__ import annotations

import json
import sys
import threading

from tests.support.nursery import Nursery


def main() -> None:
    target, kind, task, *args = sys.argv[1:]
    nursery = Nursery(target)
    nursery.manifest()
    kid = nursery.fork(kind)  # type: ignore[arg-type]
    kid.begin(task, *map(json.loads, args))
    print(json.dumps([nursery.template.pid, kid.pid]), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
