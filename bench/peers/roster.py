"""The peers: what to install, how to fill their queue, and how their workers are started.

Owns the settings that decide a comparison. Each peer runs as many processes as ours does, and
what else its own documentation says makes it quick:

    PgQueuer   batches of 100 (its default of 10 is seven times slower); asyncpg and uvloop
    taskiq     lists of Redis, which need no acknowledgement; uvloop
    Dramatiq   its default of 8 threads a process
    Celery     prefork, its default prefetch of 4 a process (64 was not quicker)
    Huey       process workers; on Redis, where they wait for tasks in the server, and on
               SqliteHuey's defaults (WAL)

Results are stored where the peer can store them, because ours are; none writes a line of
log for each task. The versions are pinned, so that figures can be compared between runs.

Celery and Huey run each task in a process that does nothing else meanwhile, as ours does: a task
that computes, hangs or dies disturbs no other. In the others it shares a process: with the event
loop that also fetches tasks and tells of their ends (PgQueuer, taskiq), or with seven other threads
(Dramatiq). That is quicker as long as nothing goes wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Needs = Literal["postgresql", "redis", "sqlite"]

_PROCESSES = "{processes}"


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
    """How many times as fast ours has to be at tasks that do nothing."""
    share: float
    """How many tasks it is given, of those that ours is given: slow peers need fewer."""
    isolates: bool
    """Each task has a process to itself while it runs, as with ours."""
    single: bool = False
    """A worker is one process: several are started."""
    has_results: bool = True
    threads: int = 1
    """Tasks that one process has begun at a time, if they compute."""

    def command(self, processes: int) -> tuple[str, ...]:
        """How a worker of so many processes is started; a single one several times."""
        return tuple(word.replace(_PROCESSES, str(processes)) for word in self.worker)

    def copies(self, processes: int) -> int:
        """How often that is started."""
        return processes if self.single else 1


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
    isolates=False,
    single=True,
    has_results=False,
)

TASKIQ = Peer(
    name="taskiq",
    needs="redis",
    requirements=("taskiq==0.13.0", "taskiq-redis==1.2.4", "redis==8.1.0", "uvloop==0.23.0"),
    program="bench.peers.on_taskiq",
    worker=(
        *("taskiq", "worker", "--log-level", "WARNING", "--workers", _PROCESSES),
        "bench.peers.on_taskiq:broker",
    ),
    bound=1.0,
    share=0.25,
    isolates=False,
)

DRAMATIQ = Peer(
    name="Dramatiq",
    needs="redis",
    requirements=("dramatiq[redis]==2.2.1", "redis==8.1.0"),
    program="bench.peers.on_dramatiq",
    worker=("dramatiq", "--processes", _PROCESSES, "--threads", "8", "bench.peers.on_dramatiq"),
    bound=4.0,
    share=0.25,
    isolates=False,
    threads=8,
)

CELERY = Peer(
    name="Celery",
    needs="redis",
    requirements=("celery[redis]==5.7.0", "kombu==5.7.0", "redis==8.1.0"),
    program="bench.peers.on_celery",
    worker=(
        *("celery", "--app", "bench.peers.on_celery", "worker", "--loglevel", "WARNING"),
        *("--pool", "prefork", "--concurrency", _PROCESSES),
    ),
    bound=20.0,
    share=0.05,
    isolates=True,
)

_HUEY = ("huey_consumer", "bench.peers.on_huey.huey", "-k", "process", "-w", _PROCESSES, "--quiet")

HUEY = Peer(
    name="Huey",
    needs="redis",
    requirements=("huey==3.5.4", "redis==8.1.0"),
    program="bench.peers.on_huey",
    worker=_HUEY,
    bound=4.0,
    share=0.25,
    isolates=True,
)

HUEY_ON_SQLITE = Peer(
    name="Huey (SqliteHuey)",
    needs="sqlite",
    requirements=HUEY.requirements,
    program="bench.peers.on_huey",
    worker=_HUEY,
    bound=10.0,
    share=0.05,
    isolates=True,
)

PEERS = (PGQUEUER, DRAMATIQ, CELERY, HUEY_ON_SQLITE)
"""Those beside which no-op tasks are drained."""

BESIDE_WORK = (PGQUEUER, HUEY, CELERY, TASKIQ, DRAMATIQ)
"""Those beside which tasks are run that do something."""
