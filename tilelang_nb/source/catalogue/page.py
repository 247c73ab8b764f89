"""The page of a code: what it means, a text that is refused, what is said about it, and a text that works.

A page is `pages/TLxxx.md`: front matter (`code`, `slug`, and `run` where the bad text alone does not show the
code), a title, a paragraph, and three fenced blocks named `python bad`, `text said` and `python good`. The tests
run both texts.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import CATALOGUE

FOLDER = Path(__file__).parent / "pages"
BLOCK = re.compile(r"^```(?:python|text) (bad|said|good)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
FRONT = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """run: how the bad text shows the code: "compile" it; "launch": its host code launches a kernel, which is refused;
    "findings": the simulated device finds it in a launch; "device": the compiler of device code for sm_90a says it;
    "fault": only a fault of the compiler shows it.
    """

    code: str
    slug: str
    severity: str
    run: str
    title: str
    meaning: str
    bad: str
    said: str
    good: str
    markdown: str


class UnknownCode(LookupError):
    """No such code or slug; the text names the nearest."""


@cache
def page(code_or_slug: str) -> Page:
    """The page of `TL101`, `tl101` or `chained-assignment`; UnknownCode where there is none."""
    wanted = code_or_slug.strip()
    number = re.fullmatch(r"(?:TL)?(\d{1,3})", wanted, re.IGNORECASE)
    if number and f"TL{int(number[1]):03}" in CATALOGUE:
        wanted = f"TL{int(number[1]):03}"
    for code, message in CATALOGUE.items():
        if wanted.upper() == code or wanted.lower() == message.slug:
            return parse(code, (FOLDER / f"{code}.md").read_text(encoding="utf-8"))
    slugs = {message.slug: code for code, message in CATALOGUE.items()}
    near = difflib.get_close_matches(wanted.lower(), slugs, 1) or difflib.get_close_matches(
        wanted.upper(), CATALOGUE, 1
    )
    hint = f"; the nearest is {slugs.get(near[0], near[0])}" if near else f"; codes run from TL001 to {max(CATALOGUE)}"
    family = f"TL{number[1][0]}" if number else wanted.upper()
    begun = [code for code in sorted(CATALOGUE) if wanted and code.startswith(family)]
    if begun:
        hint = f"; there are {begun[0]} to {begun[-1]}" if len(begun) > 1 else f"; there is {begun[0]}"
    elif number:
        hint = f"; codes run from TL001 to {max(CATALOGUE)}"
    raise UnknownCode(f"there is no diagnostic {wanted!r}{hint}")


def parse(code: str, text: str) -> Page:
    """A page from its file; ValueError says what is missing in it."""
    matter = FRONT.fullmatch(text)
    if not matter:
        raise ValueError(f"{code}.md: no front matter between two lines of ---")
    front = dict(re.findall(r"^(\w+): *(.*)$", matter[1], re.MULTILINE))
    blocks = dict(BLOCK.findall(matter[2]))
    prose = BLOCK.sub("", matter[2]).strip()
    title, _, meaning = prose.partition("\n")
    missing = [name for name in ("bad", "said", "good") if not blocks.get(name, "").strip()]
    if missing or not title.startswith("# ") or not meaning.strip():
        raise ValueError(f"{code}.md: missing {', '.join(missing) or 'its title or text'}")
    return Page(
        code=front["code"],
        slug=front["slug"],
        severity=CATALOGUE[code].severity,
        run=front.get("run", "compile"),
        title=title[2:],
        meaning=meaning.strip(),
        bad=blocks["bad"],
        said=blocks["said"],
        good=blocks["good"],
        markdown=matter[2].strip() + "\n",
    )


def listing() -> str:
    """Every code with its slug, a line each."""
    return "".join(f"{code}  {message.slug}\n" for code, message in sorted(CATALOGUE.items()))


def explain(code_or_slug: str) -> str:
    """The page as plain text; for an unknown code one line that says so and names the nearest."""
    try:
        found = page(code_or_slug)
    except UnknownCode as unknown:
        return f"{unknown}\n"
    examples = [
        ("Not accepted:" if found.severity == "error" else "A text that gives it:", found.bad),
        ("What is said:", found.said),
        ("Write:", found.good),
    ]
    parts = [f"{found.code} {found.slug} ({found.severity})", found.title, textwrap.fill(found.meaning, 100)]
    parts += [f"{heading}\n\n{textwrap.indent(text.rstrip(), '    ')}" for heading, text in examples]
    return "\n\n".join(parts) + "\n"
