"""A traceback, which is stored as text, as frames that can be folded.

Owns the reading of Python's format. What is not in that format stays as it is: nothing is lost.
Frames of libraries are folded together, those of the user's own code stand open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

__all__ = ["Frame", "FrameGroup", "frame_groups"]

_FRAME: Final = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+), in (?P<name>.*)')
_LIBRARY: Final = re.compile(
    r"[/\\](?:site-packages|dist-packages|lib[/\\]python\d|lib64[/\\]python\d)|^<frozen "
)
_OURS: Final = re.compile(r"[/\\]holdfast[/\\](?:runtime|client|store|core|app\.py)")
_HEAD: Final = "Traceback (most recent call last):"
_MARKS: Final = re.compile(r"\s*[~^]+\s*")
_SHOWN_FILE: Final = 3


@dataclass(slots=True)
class Frame:
    """One place in the code."""

    file: str
    line: int
    name: str
    code: list[str] = field(default_factory=list)

    @property
    def is_library(self) -> bool:
        """Whether it is none of the user's own code."""
        return bool(_LIBRARY.search(self.file) or _OURS.search(self.file))

    @property
    def place(self) -> str:
        """The last parts of its file."""
        parts = re.split(r"[/\\]", self.file)
        return "/".join(parts[-_SHOWN_FILE:]) if len(parts) > _SHOWN_FILE else self.file

    @property
    def package(self) -> str:
        """Of a library: its name."""
        inner = re.split(r"(?:site|dist)-packages[/\\]", self.file)[-1]
        if inner == self.file:
            return "holdfast" if _OURS.search(self.file) else "Python"
        return re.split(r"[/\\]", inner)[0].removesuffix(".py")


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """Frames that stand together, or text between them."""

    frames: Sequence[Frame] = ()
    is_library: bool = False
    text: str = ""

    @property
    def packages(self) -> str:
        """Of libraries: which."""
        return ", ".join(dict.fromkeys(frame.package for frame in self.frames))


def frame_groups(text: str) -> list[FrameGroup]:
    """What a traceback consists of, from the outermost call to the innermost."""
    found: list[FrameGroup] = []
    for is_frame, parts in groupby(_parts(text), lambda part: isinstance(part, Frame)):
        if is_frame:
            frames = [part for part in parts if isinstance(part, Frame)]
            for is_library, some in groupby(frames, lambda frame: frame.is_library):
                found.append(FrameGroup(tuple(some), is_library))
        else:
            said = "\n".join(str(part) for part in parts if part != _HEAD).strip("\n")
            if said.strip():
                found.append(FrameGroup(text=said))
    return found


def _parts(text: str) -> Iterator[Frame | str]:
    frame: Frame | None = None
    for line in text.splitlines():
        match = _FRAME.fullmatch(line)
        if match is not None:
            if frame is not None:
                yield frame
            frame = Frame(match["file"], int(match["line"]), match["name"])
        elif frame is not None and line.startswith("    "):
            if not _MARKS.fullmatch(line):
                frame.code.append(line[4:])
        else:
            if frame is not None:
                yield frame
                frame = None
            yield line
    if frame is not None:
        yield frame
