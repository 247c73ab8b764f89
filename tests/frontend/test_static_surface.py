"""The table of `T` that the static check reads is the language; `pytest --update-goldens` writes it anew."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

import pytest

from tilelang_nb import language
from tilelang_nb.frontend.static import surface
from tilelang_nb.frontend.static.surface_table import SIGNATURES
from tilelang_nb.language.dtypes import ALIASES, DTYPES, SCALARS
from tilelang_nb.source.calls import CallSignature

FILE = Path(surface.__file__).with_name("surface_table.py")
HEAD = '''"""What `T` offers, as text: it is read without TVM.  Written by `pytest --update-goldens tests/frontend`."""

from __future__ import annotations

# One operation a line, `name(parameters)`, with `=` behind a parameter that has a default, and `name -> called` where
# messages call it otherwise.  Lines that begin with blanks continue the one above.
'''


def signature_of(name: str) -> CallSignature | None:
    found = getattr(language, name)
    checked = found.__init__ if inspect.isclass(found) else found
    return getattr(checked, "call_signature", None)


def shown(signature: CallSignature) -> str:
    parts: list[str] = []
    starred = False
    for at, p in enumerate(signature.parameters):
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred = starred or p.kind is p.VAR_POSITIONAL
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(stars + p.name + "=" * (p.default is not p.empty))
        following = signature.parameters[at + 1 : at + 2]
        if p.kind is p.POSITIONAL_ONLY and not (following and following[0].kind is p.POSITIONAL_ONLY):
            parts.append("/")
    return ", ".join(parts)


def wrapped(text: str) -> str:
    return textwrap.fill(text, 118, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def written() -> str:
    lines, plain = [], []
    for name in language.__all__:
        signature = signature_of(name)
        if signature is None:
            plain += [name] if name not in DTYPES else []
            continue
        called = signature.called.removeprefix("T.")
        lines.append(f"{name}({shown(signature)})" + (f" -> {called}" if called != name else ""))
    parts = [
        ("SIGNATURES", "\n".join(map(wrapped, lines))),
        ("UNCHECKED", wrapped(" ".join(plain))),
        ("EXPORTED_DTYPES", wrapped(" ".join(sorted(DTYPES)))),
        ("SCALARS", wrapped(" ".join(sorted({*SCALARS, *ALIASES})))),
    ]
    return HEAD + "".join(f'{name} = """\\\n{text}\n"""\n' for name, text in parts)


def test_the_table_is_the_language(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        FILE.write_text(written(), encoding="utf-8", newline="\n")
    assert FILE.read_text(encoding="utf-8") == written()


@pytest.mark.parametrize("name", language.__all__)
def test_every_name_has_the_signature_of_the_language(name: str) -> None:
    assert name in surface.NAMES
    real, read = signature_of(name), surface.signature(name)
    assert (real is None) == (read is None)
    if real is not None and read is not None:
        assert (read.called, shown(read)) == (real.called, shown(real))


def test_the_names_are_those_of_the_language() -> None:
    assert sorted(surface.NAMES) == language.__all__ and len(SIGNATURES) > 1000
