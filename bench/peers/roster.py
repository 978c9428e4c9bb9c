"""The peers: what to install, how to fill their queue, and how their workers are started.

Owns the settings that decide a comparison. Each peer runs two processes, as ours does, and
what else its own documentation says makes it quick:

    PgQueuer   batches of 100 (its default of 10 is seven times slower); asyncpg and uvloop
    Dramatiq   its default of 8 threads a process
    Celery     prefork, its default prefetch of 4 a process (64 was not quicker)
    Huey       process workers on SqliteHuey's defaults (WAL)

Results are stored where the peer can store them, because ours are; none writes a line of
log for each task. The versions are pinned, so that figures can be compared between runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Needs = Literal["postgresql", "redis", "sqlite"]


@dataclass(frozen=True, slots=True)
class Peer:
    """One other task queue."""

    name: str
    needs: Needs
    requirements: tuple[str, ...]
    program: str
    """The module that fills the queue: `python -m PROGRAM COUNT`."""
    worker: tuple[str, ...]
    bound: float
    """How many times as fast ours has to be."""
    share: float
    """How many tasks it is given, of those that ours is given: slow peers need fewer."""
    copies: int = 1


PGQUEUER = Peer(
    name="PgQueuer",
    needs="postgresql",
    # With a newer typer its command line fails.
    requirements=(
        *("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0", "typer==0.20.0"),
    ),
    program="bench.peers.on_pgqueuer",
    worker=(
        *("pgq", "run", "--batch-size", "100", "--log-level", "WARNING"),
        "bench.peers.on_pgqueuer:work",
    ),
    bound=1.3,
    share=1.0,
    copies=2,
)

DRAMATIQ = Peer(
    name="Dramatiq",
    needs="redis",
    requirements=("dramatiq[redis]==2.2.1", "redis==8.1.0"),
    program="bench.peers.on_dramatiq",
    worker=("dramatiq", "--processes", "2", "--threads", "8", "bench.peers.on_dramatiq"),
    bound=4.0,
    share=0.25,
)

CELERY = Peer(
    name="Celery",
    needs="redis",
    requirements=("celery[redis]==5.7.0", "kombu==5.7.0", "redis==8.1.0"),
    program="bench.peers.on_celery",
    worker=(
        *("celery", "--app", "bench.peers.on_celery", "worker", "--loglevel", "WARNING"),
        *("--pool", "prefork", "--concurrency", "2"),
    ),
    bound=20.0,
    share=0.05,
)

HUEY = Peer(
    name="Huey (SqliteHuey)",
    needs="sqlite",
    requirements=("huey==3.5.4",),
    program="bench.peers.on_huey",
    worker=("huey_consumer", "bench.peers.on_huey.huey", "-k", "process", "-w", "2", "--quiet"),
    bound=10.0,
    share=0.05,
)

PEERS = (PGQUEUER, DRAMATIQ, CELERY, HUEY)
