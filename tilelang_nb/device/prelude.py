"""What stands in front of the kernels in a CUDA text: the types that it names and the functions that it calls.

The prelude that TVM prints includes C++'s type traits, which costs NVRTC more than a second.  This one holds only what
the text at hand uses, from the files in `cuda/`.  There `//: name` begins the definitions of a name, and
`//: name of type` overloads that are needed only in texts that have the type.  A definition uses only earlier ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

FILES = ("types", "numbers", "atomics", "report")
HEADERS = (
    (r"\bhalf[248]?\b|\b__half", "#include <cuda_fp16.h>"),
    (r"\bnv_bfloat16|\b__nv_bfloat16", "#include <cuda_bf16.h>"),
    (r"\b__nv_fp8|\bfp8_e", "#include <cuda_fp8.h>"),
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_BEGIN = re.compile(r"^//: (\w+)(?: of (\w+))?$", re.M)


@lru_cache(maxsize=1)
def definitions() -> tuple[tuple[str, str, str, frozenset[str]], ...]:
    """All definitions in order: name, type ("" for every text), text, and the words of the text."""
    found = []
    for file in FILES:
        text = (Path(__file__).parent / "cuda" / f"{file}.cuh").read_text(encoding="utf-8")
        begins = list(_BEGIN.finditer(text))
        for begin, after in zip(begins, [*[one.start() for one in begins[1:]], len(text)]):
            definition = text[begin.end() : after].strip()
            found.append((begin[1], begin[2] or "", definition, frozenset(_WORD.findall(definition))))
    return tuple(found)


def prelude_for(text: str) -> str:
    """The lines that must stand in front of a text of kernels; "" for none."""
    words = set(_WORD.findall(text))
    needed: list[str] = []
    for name, kind, definition, its_words in reversed(definitions()):
        if name in words and (not kind or kind in words):
            needed.append(definition)
            words |= its_words
    needed.reverse()
    everything = "\n".join([*needed, text])
    headers = [header for pattern, header in HEADERS if re.search(pattern, everything)]
    return "\n".join([*headers, *needed])
