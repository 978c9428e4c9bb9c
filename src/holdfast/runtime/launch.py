"""From `MODULE:APP` to a supervisor: the application is imported elsewhere, the store opened here.

Owns the order of a start, and what is undone when a part of it fails.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.runtime import file_limit, process_role
from holdfast.runtime.supervisor.children.template_process import TemplateProcess

if TYPE_CHECKING:
    from holdfast.runtime.supervisor.supervisor import Supervisor
    from holdfast.runtime.wire.messages import Manifest
    from holdfast.store.settings import StoreSettings

log = logging.getLogger("holdfast.worker")

_CONNECTIONS = 4
"""What a worker takes of a PostgreSQL server, however many children it has; a fifth is there for
the renewal of leases alone."""
_WAIT_FOR_ROWS = 0.5
"""Seconds that a worker waits for a row that another transaction holds on PostgreSQL. Meanwhile
whatever was to be written together with it waits, too; after that it goes on without it."""


def launch(
    target: str,
    given: Mapping[str, Any],
    *,
    version: str,
    path: Sequence[str] = (),
    owns_process: bool = False,
    ready: Callable[[], None] = lambda: None,
) -> Supervisor:
    """Everything a worker needs, ready to `run`; raises if app or store are not usable.

    `given`: settings of the worker, by flag or keyword; None is not given. `path`: where this
    process finds its modules, if the app should be found there too. `owns_process`: this process is
    there for the worker alone, so that all its children are the worker's.
    """
    process_role.refuse_worker()
    file_limit.ensure(1)
    with ExitStack() as undo:
        template = TemplateProcess(target, path)
        undo.callback(template.lifeline.cut)
        # It has no children yet, and may be in the middle of a long import.
        undo.callback(template.end, patience=0)
        # From here on the application is being imported, over there, and so is all of this.
        from holdfast.runtime.options import WorkerOptions
        from holdfast.runtime.supervisor.supervisor import Supervisor, pool_size
        from holdfast.store.open import open_store

        manifest = template.manifest()
        if not manifest.tasks:
            log.warning("%s has no task: import the modules that define them beside it", target)
        options = WorkerOptions.load(given, manifest.settings, os.environ)
        file_limit.ensure(sum(count for count, _ in pool_size(options, manifest.tasks).values()))
        store = open_store(store_settings(manifest, options.listen_url))
        undo.callback(store.close)
        supervisor = Supervisor(
            template,
            manifest,
            store,
            options,
            version=version,
            owns_process=owns_process,
            ready=ready,
        )
        undo.pop_all()
        return supervisor


def store_settings(manifest: Manifest, listen_url: str | None = None) -> StoreSettings:
    """Where the app's tasks are, and with how many connections a worker goes there."""
    from holdfast.store.settings import StoreSettings, listening_at

    given = StoreSettings(**manifest.settings["store"])
    ours = replace(given, max_connections=_CONNECTIONS)
    if listen_url is not None:
        ours = listening_at(ours, listen_url)
    if not ours.is_server:
        return ours
    return replace(ours, lock_timeout=min(ours.lock_timeout, _WAIT_FOR_ROWS))
