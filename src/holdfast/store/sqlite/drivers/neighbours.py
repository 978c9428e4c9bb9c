"""What the rest of the program has open through the two SQLite libraries.

Owns the looking. Imports no library for it, and uses no connection that it finds.
"""

from __future__ import annotations

import gc
import sys

from holdfast.store.sqlite.drivers import descriptors
from holdfast.store.sqlite.drivers.descriptors import Identity, identity


def have_apsw(file: Identity, *, or_we: bool = False) -> bool:
    """Whether the program has connections of apsw to a file, other than ours, or also ours."""
    if "apsw" not in sys.modules:
        return False
    from holdfast.store.sqlite.drivers.apsw_driver import open_files

    return any(_leads_to(path, file) for path in open_files(ours=or_we))


def may_have_sqlite3(file: Identity) -> bool:
    """Whether a connection of `sqlite3` may be open to a file that apsw has not open."""
    if "sqlite3" not in sys.modules:
        return False
    # Connections need not be found among the objects: some programs freeze those.
    found = descriptors.count(file)
    return have_sqlite3() if found is None else found > 0


def have_sqlite3() -> bool:
    """Whether there are connections of `sqlite3`, to whatever file: they do not say to which."""
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3 is None:
        return False
    # Not isinstance, which asks objects for their class: proxies of all kinds would come to life.
    return any(issubclass(type(found), sqlite3.Connection) for found in gc.get_objects())


def _leads_to(path: str, file: Identity) -> bool:
    try:
        return identity(path) == file
    except (OSError, ValueError):
        return False
