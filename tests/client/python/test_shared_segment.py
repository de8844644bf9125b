"""A shared memory segment: its slots, and what is left of it when its process is gone."""

import gc
import os
import secrets
import signal
import subprocess
import sys

import pytest
from aerie_draft.shared_segment import SharedSegment, remove_stale_segments
from file_locks import is_locked


def segments():
    return {name for name in os.listdir("/dev/shm") if name.startswith("aerie-")}


def test_a_slot_is_given_again_when_it_is_free_and_never_with_its_old_stamp():
    segment = SharedSegment(1 << 12)
    first = segment.put(b"a" * 100)
    second = segment.put(b"b" * 100)
    assert (first.offset, second.offset) == (64, 64 + 192)
    segment.free(first)
    third = segment.put(b"c" * 10)
    assert third.offset == first.offset
    assert len({first.stamp, second.stamp, third.stamp, 0}) == 4
    assert segment.put(b"d" * 4096) is None
    segment.close()
    assert segment.put(b"e") is None


def test_a_call_that_has_ended_leaves_no_stamp_that_a_late_reader_could_take():
    segment = SharedSegment(1 << 12)
    fd = os.open(f"/dev/shm{segment.name}", os.O_RDONLY)
    slot = segment.put(b"rows")
    assert os.pread(fd, 8, slot.offset) == slot.stamp.to_bytes(8, "little")
    segment.free(slot)
    assert os.pread(fd, 8, slot.offset) == bytes(8)
    os.close(fd)
    segment.close()


def test_a_segment_that_finds_no_room_is_told_and_leaves_nothing(monkeypatch):
    name = secrets.token_hex(16)
    monkeypatch.setattr("aerie_draft.shared_segment.secrets.token_hex", lambda count: name)
    with pytest.raises(OSError):
        SharedSegment(1 << 50)
    assert f"aerie-{name}" not in segments()


def test_what_a_killed_process_left_is_removed_and_what_others_hold_is_not():
    held = SharedSegment(1 << 12)
    source = (
        "import sys; from aerie_draft.shared_segment import SharedSegment\n"
        "s = SharedSegment(4096); print(s.name, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    left = process.stdout.readline().strip()[1:]
    remove_stale_segments()
    assert left in segments()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    remove_stale_segments()
    assert left not in segments()
    assert held.name[1:] in segments()
    held.close()
    assert held.name[1:] not in segments()


def test_a_segment_that_nobody_uses_any_more_goes_by_itself():
    segment = SharedSegment(1 << 12)
    fd = os.open(f"/dev/shm{segment.name}", os.O_RDONLY)
    assert is_locked(fd)
    del segment
    gc.collect()
    assert not is_locked(fd)
    os.close(fd)
