#!/usr/bin/env python3
"""Fails unless a program holds device code for each of some compute capabilities.

  architectures.py PROGRAM CAPABILITY...      e.g. 80 90 100

Reads the fat binaries in the section .nv_fatbin itself, so that it needs no tool of the CUDA toolkit.
"""

import struct
import sys

MAGIC = 0xBA55ED50
KIND_ELF = 2


def section(program, wanted):
    """The bytes of a section of a 64-bit ELF file; empty when there is none."""
    (offset,) = struct.unpack_from("<Q", program, 0x28)
    size, count, names = struct.unpack_from("<HHH", program, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", program, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    for name, _, _, _, at, length in headers:
        end = program.index(b"\0", strings + name)
        if program[strings + name:end] == wanted:
            return program[at:at + length]
    return b""


def capabilities(fatbin):
    """Of the compiled code, in order of appearance."""
    at = 0
    while at + 16 <= len(fatbin):
        magic, _, header_bytes, length = struct.unpack_from("<IHHQ", fatbin, at)
        if magic != MAGIC:
            at += 8  # filled up between two
            continue
        entry, end = at + header_bytes, at + header_bytes + length
        while entry < end:
            kind, _, entry_header, entry_bytes = struct.unpack_from("<HHIQ", fatbin, entry)
            if kind == KIND_ELF:
                yield struct.unpack_from("<I", fatbin, entry + 28)[0]
            entry += entry_header + entry_bytes
        at = end


def main():
    with open(sys.argv[1], "rb") as file:
        found = set(capabilities(section(file.read(), b".nv_fatbin")))
    wanted = {int(word) for argument in sys.argv[2:] for word in argument.split(";")}
    print(f"{sys.argv[1]} holds code for {sorted(found) or 'no device'}")
    if not wanted or not wanted <= found:
        print(f"expected {sorted(wanted)}; look at AERIE_CUDA_ARCHITECTURES", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
