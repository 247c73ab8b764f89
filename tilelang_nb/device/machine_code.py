"""What the machine code itself says of its kernels: registers, static shared memory, stack, accesses of local memory.

ptxas reports the same while it assembles; a compiler that takes the code from a cache of its own reports nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .resources import number

TEXT, SHARED, INFO = ".text.", ".nv.shared.", ".nv.info"
VALUE_FORMAT = 4  # of an attribute: a size and so many bytes
FRAME_SIZE, REGISTERS = 0x11, 0x2F  # attributes of a symbol
INSTRUCTION = 16  # bytes of one, since sm_70
OPCODE = 0xFFF
STORE_LOCAL, LOAD_LOCAL = 0x387, 0x983
WIDTH_SHIFT = 73  # where an access has its width, in three bits
RESERVED_FROM, RESERVED = 90, 1024  # from this architecture on static shared memory holds the system's part
WIDTHS = (1, 1, 2, 2, 4, 8, 16, 16)  # bytes of u8, s8, u16, s16, 32, 64, 128, u128


@dataclass(frozen=True)
class Section:
    """A section of the file: its bytes, none where it only says how much memory it needs."""

    name: str
    content: bytes
    size: int


def read_machine_code(cubin: bytes, arch: str) -> dict[str, dict[str, int]]:
    """Per kernel what `resources.read_log` gives of a report; {} for what is no machine code.

    Where a kernel has a stack, what counts as spills is every access of local memory: its arrays are not told apart.
    """
    try:
        return _read(cubin, RESERVED if number(arch) >= RESERVED_FROM else 0)
    except (struct.error, IndexError, ValueError):
        return {}


def _read(cubin: bytes, reserved: int) -> dict[str, dict[str, int]]:
    sections = _sections(cubin)
    symbols = _symbols(sections)
    found: dict[str, dict[str, int]] = {
        name.removeprefix(TEXT): {"shared": 0, "stack": 0, "spill_stores": 0, "spill_loads": 0}
        for name in sections
        if name.startswith(TEXT)
    }
    for attribute, payload in _attributes(sections[INFO].content if INFO in sections else b""):
        if attribute in (FRAME_SIZE, REGISTERS):
            symbol, value = struct.unpack("<II", payload[:8])
            kernel = found.get(symbols[symbol])
            if kernel is not None:
                kernel["registers" if attribute == REGISTERS else "stack"] = value
    for name, kernel in found.items():
        shared = sections.get(SHARED + name)
        kernel["shared"] = max(shared.size - reserved, 0) if shared is not None else 0
        if kernel["stack"]:
            kernel["spill_stores"], kernel["spill_loads"] = _local_bytes(sections[TEXT + name].content)
    return {name: kernel for name, kernel in found.items() if "registers" in kernel}


def _sections(cubin: bytes) -> dict[str, Section]:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("no ELF of 64 bits")
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    each, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + each * at) for at in range(count)]
    names = heads[names_at]
    found = {}
    for name, kind, _flags, _address, offset, size, *_rest in heads:
        begin = names[4] + name
        text = cubin[begin : cubin.index(b"\0", begin)].decode()
        found[text] = Section(text, b"" if kind == 8 else cubin[offset : offset + size], size)  # 8: it has no bytes
    return found


def _symbols(sections: dict[str, Section]) -> list[str]:
    table, names = sections[".symtab"].content, sections[".strtab"].content
    places = [struct.unpack_from("<I", table, at)[0] for at in range(0, len(table), 24)]
    return [names[place : names.index(b"\0", place)].decode() for place in places]


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, payload) of the attributes that have one."""
    at = 0
    while at + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if form == VALUE_FORMAT:
            yield attribute, content[at : at + size]
            at += size


def _local_bytes(code: bytes) -> tuple[int, int]:
    """Bytes that the stores and the loads of local memory move, each instruction once."""
    moved = {STORE_LOCAL: 0, LOAD_LOCAL: 0}
    for at in range(0, len(code) - INSTRUCTION + 1, INSTRUCTION):
        word = int.from_bytes(code[at : at + INSTRUCTION], "little")
        if word & OPCODE in moved:
            moved[word & OPCODE] += WIDTHS[word >> WIDTH_SHIFT & 7]
    return moved[STORE_LOCAL], moved[LOAD_LOCAL]
