"""A child that was spawned: it imports the application by itself.

    python -m holdfast.runtime.child.spawned_main MODULE:APP DIRECTORY PATH FORK

Its socket, its shared page, its output pipe and its lifeline are the descriptors 3 to 6; FORK is
the message that asked for it, in hexadecimal.
"""

from __future__ import annotations

import os
import sys

import msgspec

from holdfast.runtime import orphan_guard, process_role
from holdfast.runtime.child import seat
from holdfast.runtime.child.load_app import Unloadable, load
from holdfast.runtime.child.stdio import StandardStreams
from holdfast.runtime.wire.messages import EXIT_BROKEN, Fork

_DESCRIPTORS = (3, 4, 5)
_LIFELINE = 6


def main() -> None:
    """Be a child."""
    target, place, path, message = sys.argv[1:]
    orphan_guard.hang_on(_LIFELINE)
    os.close(_LIFELINE)
    for descriptor in _DESCRIPTORS:
        os.set_inheritable(descriptor, False)
    fork = msgspec.msgpack.decode(bytes.fromhex(message), type=Fork)
    os.chdir(place)
    streams = StandardStreams()
    process_role.take("importing")
    try:
        application = load(target, path)
    except Unloadable as error:
        sys.stderr.write(f"{error}\n")
        streams.flush()
        os._exit(EXIT_BROKEN)
    process_role.take("child")
    seat.live(fork, _DESCRIPTORS, application, streams)


if __name__ == "__main__":
    main()
