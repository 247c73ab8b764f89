"""What stands in front of the kernels in a CUDA text: the types that it names and the functions that it calls.

The prelude that TVM prints includes C++'s type traits, which costs NVRTC more than a second.  This one holds only what
the text at hand uses, from the files in `cuda/`.  There `//: name` begins the definitions of a name, and
`//: name of type` overloads that are needed only in texts that have the type.  A definition uses only earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

FILES = ("types", "numbers", "atomics", "copies", "hopper", "clusters", "report")
HEADERS = (
    ("half", r"\bhalf[248]?\b|\b__half", "#include <cuda_fp16.h>"),
    ("nv_bfloat16", r"\bnv_bfloat16|\b__nv_bfloat16", "#include <cuda_bf16.h>"),
    ("", r"\b__nv_fp8|\bfp8_e", "#include <cuda_fp8.h>"),
)
PRINTED = "tl_bits"
_WORD = re.compile(r"[A-Za-z_]\w*")
_BEGIN = re.compile(r"^//: (\w+)(?: of (\w+))?$", re.M)


@lru_cache(maxsize=8)
def _sections(file: str) -> tuple[tuple[str, str, str, frozenset[str]], ...]:
    """The definitions of a file in order: name, type ("" for every text), text, and the words of the text."""
    text = (Path(__file__).parent / "cuda" / f"{file}.cuh").read_text(encoding="utf-8")
    begins = list(_BEGIN.finditer(text))
    found = []
    for begin, after in zip(begins, [*[one.start() for one in begins[1:]], len(text)]):
        definition = text[begin.end() : after].strip()
        found.append((begin[1], begin[2] or "", definition, frozenset(_WORD.findall(definition))))
    return tuple(found)


@lru_cache(maxsize=1)
def definitions() -> tuple[tuple[str, str, str, frozenset[str]], ...]:
    """All definitions in order: name, type ("" for every text), text, and the words of the text."""
    return tuple(section for file in FILES for section in _sections(file))


def prelude_for(text: str, moved: Iterable[str] = ()) -> str:
    """The lines that must stand in front of a text of kernels; "" for none.

    moved: of "half" and "nv_bfloat16" those that the text only moves and converts from and to float; they need no
    header.
    """
    used = {name for name, pattern, _ in HEADERS if re.search(pattern, text)}
    moved = used if used <= set(moved) else set()  # the headers include one another
    words = set(_WORD.findall(text))
    needed: list[str] = []
    for name, kind, definition, its_words in reversed(definitions()):
        computing = kind in moved and name != PRINTED  # no text computes with what it only moves
        if name in words and (not kind or kind in words) and not computing:
            needed.append(definition)
            words |= its_words
    needed.reverse()
    everything = "\n".join([*needed, text])
    narrow = {name: definition for name, _, definition, _ in _sections("narrow")}
    begin = []
    for name, pattern, header in HEADERS:
        if re.search(pattern, everything):
            begin.append(narrow[name] if name in moved else header)
    return "\n".join([*begin, *needed])
