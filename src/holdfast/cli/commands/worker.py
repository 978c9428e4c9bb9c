"""`holdfast worker`: start a worker, and stop it as the signals say.

Owns flags, signals and exit codes. What a worker is, is `runtime.supervisor`'s.

    0    stopped as asked        1    children had to be killed (a third signal)
    2    wrong flags, or the application cannot be imported
    3    the store cannot be used        70   an error of Holdfast's own
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

import click

from holdfast import __version__
from holdfast.cli.logs import FORMATS, LEVELS, always, configure
from holdfast.core.errors import ConfigError, StoreError

EXIT_STORE = 3
EXIT_BROKEN = 70


class _Stopped(BaseException):
    """A signal to stop came while the worker was starting.

    No KeyboardInterrupt: one that is raised while a module is imported which executes text (each
    dataclass does) has the interpreter exit as if nobody had caught it.
    """


def _end_the_start(number: int, frame: FrameType | None) -> None:
    raise _Stopped


def _end_it_again(lost: sys.UnraisableHookArgs) -> None:
    """What is raised inside a callback of the interpreter's is lost: have it raised once more."""
    if lost.exc_type is _Stopped:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
    else:
        sys.__unraisablehook__(lost)


def _say_it_starts(number: int, frame: FrameType | None) -> None:
    click.echo("holdfast worker: the app is being imported, or the database opened", err=True)


@click.command("worker")
@click.argument("target", metavar="MODULE:APP", envvar="HOLDFAST_APP")
@click.option(
    "-c", "--concurrency", type=int, help="Processes that run tasks; default: one per processor."
)
@click.option(
    "--threads", type=int, help="Tasks with executor='thread' that run at a time; default 8."
)
@click.option("--coroutines", type=int, help="async tasks that run at a time; default 200.")
@click.option(
    "-q",
    "--queues",
    help="a,b in this order; high:5,low:1 by weight; images=4 at most four at a time.",
)
@click.option("--lease", type=float, help="Seconds until a vanished worker's tasks are taken over.")
@click.option("--grace", type=float, help="Seconds that running tasks have after SIGTERM.")
@click.option("--kill-grace", type=float, help="Seconds between SIGTERM and SIGKILL of a task.")
@click.option(
    "--outage-grace", type=float, help="Seconds that tasks go on while the store is down."
)
@click.option("--poll", type=float, help="Seconds between looks into the queues; default 1.")
@click.option("--max-tasks-per-child", type=int, help="Replace a child after so many tasks.")
@click.option(
    "--max-memory-per-child",
    type=int,
    metavar="MB",
    help="Replace a child that has grown over so many megabytes.",
)
@click.option(
    "--drop-unknown-after",
    type=float,
    metavar="SECONDS",
    help="Drop tasks that no worker has known for so long; default: never.",
)
@click.option(
    "--snapshot-interval", type=float, help="Seconds between entries in `workers list`; default 30."
)
@click.option(
    "--retention",
    metavar="KIND=TIME,…",
    help="How long records are kept; default "
    "tasks=30d,logs=30d,stats=7d,worker_states=7d,dead=never.",
)
@click.option(
    "--listen-url",
    metavar="URL",
    help="PostgreSQL behind a pooler: the server's own address, to hear of tasks at once.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve /health/live, /health/ready and /metrics there; a port alone: for this machine.",
)
@click.option(
    "--watcher",
    metavar="MODULE:FUNCTION",
    help="Trace claims and written ends: what it returns is told of each, in the worker's process.",
)
@click.option("--burst", is_flag=True, default=None, help="Stop when there is nothing left to do.")
@click.option("--reload", is_flag=True, help="For development: start anew when a file changes.")
@click.option("-v", "--verbose", is_flag=True, help="A line per task: --log-level debug.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="info",
    show_default=True,
    envvar="HOLDFAST_LOG_LEVEL",
    help="Leave out what is less.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS, case_sensitive=False),
    default="text",
    show_default=True,
    envvar="HOLDFAST_LOG_FORMAT",
    help="Lines of text, or one JSON object a line.",
)
def worker(
    target: str,
    reload: bool,
    verbose: bool,
    log_level: str,
    log_format: str,
    **given: object,
) -> None:
    """Run the tasks of the app MODULE:APP.

    Each setting has an environment variable: --kill-grace is HOLDFAST_KILL_GRACE.
    """
    from holdfast.runtime.launch import launch
    from holdfast.runtime.signals import on_question, on_stop, signals_to

    configure(level="debug" if verbose else log_level, form=log_format)
    if reload:
        from holdfast.cli.reload import run_reloading

        sys.exit(run_reloading([argument for argument in sys.argv[1:] if argument != "--reload"]))
    # Until there is something to stop in an orderly way, a signal to stop ends the start.
    sys.unraisablehook = _end_it_again
    on_stop(_end_the_start)
    on_question(_say_it_starts)
    try:
        supervisor = launch(target, given, version=__version__, owns_process=True)
        always(worker=supervisor.worker_id)
        with signals_to(supervisor):
            status = supervisor.run()
    except _Stopped:
        click.echo("holdfast worker: stopped before it was at work", err=True)
        status = 0
    except (ConfigError, StoreError) as error:
        click.echo(f"holdfast worker: {error}", err=True)
        # A URL that could be read, and leads to no database: the same as a database that is away.
        is_away = isinstance(error, StoreError) or error.option in ("url", "pooler")
        status = EXIT_STORE if is_away else 2
    except OSError as error:
        # No memory, no processes, no descriptors: nothing that a traceback would explain.
        click.echo(f"holdfast worker: the operating system refuses: {error}", err=True)
        status = EXIT_BROKEN
    sys.exit(status)
