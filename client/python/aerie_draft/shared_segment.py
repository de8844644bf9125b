"""A shared memory segment of this process, in which rows wait for a server on this host.

How bytes lie in it says `RegisterSharedMemory` in draft.proto. A slot is free again when its call
has ended, and that call may still be under way to the server: its stamp, gone by then, keeps the
server from taking the rows that come after. Linux alone: the segment is a file in /dev/shm.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import re
import secrets
import stat
import struct
import threading
from typing import NamedTuple

_FOLDER = "/dev/shm"
_MAGIC = b"AERIESHM"
_KEY_BYTES = 32
_HEADER_BYTES = 64
_SLOT_HEADER_BYTES = 64
_ALIGNMENT = 64
_OURS = re.compile(r"aerie-[0-9a-f]{32}")
_TRIES = 8
_LARGEST_STAMP = 2**64 - 1


class Slot(NamedTuple):
    """Where the rows of one call lie."""

    offset: int
    length: int
    stamp: int


class SharedSegment:
    """A segment, locked for as long as it is open. Any thread.

    OSError when /dev/shm cannot be used, ENOSPC when it has no room for `size` bytes.
    """

    def __init__(self, size: int):
        remove_stale_segments()
        size = _round_up(max(size, _HEADER_BYTES + _SLOT_HEADER_BYTES + 1))
        self.size = size
        self.key = secrets.token_bytes(_KEY_BYTES)
        self.name, self._fd = _make_locked()
        self._linked = True
        try:
            # All at once: a page that the system cannot give later would end the process.
            os.posix_fallocate(self._fd, 0, size)
            self._memory = mmap.mmap(self._fd, size)
        except OSError:
            self.unlink()
            os.close(self._fd)
            raise
        self._memory[: len(_MAGIC) + _KEY_BYTES] = _MAGIC + self.key
        self._lock = threading.Lock()
        self._used: dict[int, int] = {}  # offset of each slot: its end
        # Not from 1: rows that are written over a stamp must not look like it.
        self._stamp = secrets.randbits(64)

    def unlink(self) -> None:
        """From now on nobody can open it, and nothing of it is left behind."""
        if self._linked:
            os.unlink(f"{_FOLDER}{self.name}")
            self._linked = False

    def close(self) -> None:
        """Lets go of memory and lock, by which the server knows. It takes no more rows."""
        with self._lock:
            if self._fd < 0:
                return
            self.unlink()
            self._memory.close()
            os.close(self._fd)
            self._fd = -1

    def __del__(self):
        if hasattr(self, "_used"):  # It was made.
            self.close()

    def put(self, data: bytes | memoryview) -> Slot | None:
        """Copies `data` into a slot; None when it finds no room."""
        whole = _round_up(_SLOT_HEADER_BYTES + len(data))
        with self._lock:
            offset = self._find_room(whole) if self._fd >= 0 else None
            if offset is None:
                return None
            self._used[offset] = offset + whole
            self._stamp = self._stamp % _LARGEST_STAMP + 1
            first = offset + _SLOT_HEADER_BYTES
            self._memory[first : first + len(data)] = data
            struct.pack_into("<Q", self._memory, offset, self._stamp)
            return Slot(offset, len(data), self._stamp)

    def free(self, slot: Slot) -> None:
        with self._lock:
            if self._fd < 0:
                return
            # Before anything is written here again, of whatever size: then a server that has read
            # some of it finds no stamp of its call.
            struct.pack_into("<Q", self._memory, slot.offset, 0)
            del self._used[slot.offset]

    def _find_room(self, whole: int) -> int | None:
        offset = _HEADER_BYTES
        for first in sorted(self._used):
            if whole <= first - offset:
                return offset
            offset = self._used[first]
        return offset if whole <= self.size - offset else None


def remove_stale_segments() -> None:
    """Removes segments of this user whose processes have ended.

    The kernel lets go of a lock when its process ends, in whatever container that ran.
    """
    try:
        names = os.listdir(_FOLDER)
    except OSError:
        return
    for name in names:
        if not _OURS.fullmatch(name):
            continue
        path = f"{_FOLDER}/{name}"
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            about = os.fstat(fd)
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
        except OSError:
            pass  # Somebody holds it, or has removed it first.
        finally:
            os.close(fd)


def _make_locked() -> tuple[str, int]:
    """A new segment.

    Between making and locking it somebody who removes stale ones may lock it first; then another
    name is taken.
    """
    for _ in range(_TRIES):
        name = f"/aerie-{secrets.token_hex(16)}"
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(f"{_FOLDER}{name}", flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_nlink > 0:
                return name, fd
        except BlockingIOError:
            pass
        os.close(fd)
    raise OSError(errno.EBUSY, "no segment could be locked in /dev/shm")


def _round_up(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT
