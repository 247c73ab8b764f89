"""The pieces of the static HTML: what survives the cleaning of untrusted notebooks and reads on light and dark pages.

Only `div`, `span`, `b` and `details` with inline styles.  No text colour is set, so the text takes the colour of the
page and keeps its contrast; tints are translucent, and every tint comes with a word or a sign.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ..source.diagnostic import Diagnostic
from ..source.display import cells, plain
from ..source.render import TextOf, rows

MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
CODE = f"{MONO};font-size:12px;line-height:18px;white-space:pre"
EDGE = "rgba(128,128,128,0.4)"
FAINT = "rgba(128,128,128,0.1)"
# edge, tint, sign
SEVERITY = {
    "error": ("#d13b3b", "rgba(209,59,59,0.12)", "✗"),
    "warning": ("#b7820f", "rgba(183,130,15,0.14)", "!"),
    "note": ("#3b76d1", "rgba(59,118,209,0.12)", "i"),
    "ok": ("#2c8a4b", "rgba(44,138,75,0.14)", "✓"),
}
NEW_LINE = "rgba(59,118,209,0.14)"


def escape(text: object) -> str:
    """Text for HTML, with everything escaped that could act on a screen or reorder a line."""
    return html.escape(plain(str(text)))


def escape_line(line: str) -> str:
    """A line of code: tabs expanded, other characters as `escape` does."""
    if line.isascii() and line.isprintable():
        return html.escape(line)
    return html.escape("".join(drawn for drawn, _ in cells(line)))


def tag(name: str, content: str, style: str = "", **attributes: str) -> str:
    """An element around content that is HTML already."""
    named = {"style": style, **attributes} if style else attributes
    written = "".join(f' {key}="{html.escape(value)}"' for key, value in named.items())
    return f"<{name}{written}>{content}</{name}>"


def div(content: str, style: str = "") -> str:
    """A block of HTML."""
    return tag("div", content, style)


def span(content: str, style: str = "") -> str:
    """HTML within a line."""
    return tag("span", content, style)


def dim(content: str) -> str:
    """HTML that stands back, still readable (4.5:1 on white and on black)."""
    return span(content, "opacity:0.75")


def code(text: object) -> str:
    """Text in the fixed-width font."""
    return span(escape(text), MONO + ";font-size:12px")


def sentence(text: str) -> str:
    """A sentence whose `quoted` parts are code."""
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(code(part) if number % 2 else html.escape(part) for number, part in enumerate(parts))


def badge(kind: str, words: str) -> str:
    """A verdict: sign and words on a tint; kind is a key of SEVERITY."""
    edge, tint, sign = SEVERITY[kind]
    style = f"background:{tint};border:1px solid {edge};border-radius:4px;padding:1px 8px"
    style += ";font-weight:600;white-space:nowrap"
    return span(f"{sign}&nbsp;{escape(words)}", style)


def fold(summary: str, content: str, *, opened: bool = False, style: str = "padding:1px 0") -> str:
    """A summary that opens its content; without content, a line that stands where the summary would."""
    attribute = {"open": "open"} if opened else {}
    inside = tag("summary", summary, "cursor:pointer") + content
    return tag("details", inside, style, **attribute)


def pairs(items: Iterable[tuple[str, str]]) -> str:
    """Names with values, in a row that wraps."""
    shown = [span(f"{dim(escape(name))} {value}", "display:inline-block;margin:0 20px 0 0") for name, value in items]
    return div(" ".join(shown)) if shown else ""


def listing(
    lines: Sequence[str],
    gutter: Sequence[str] = (),
    new: frozenset[int] = frozenset(),
    *,
    limit: int | None = None,
    heading: str = "",
) -> str:
    """Lines of code, on their left what `gutter` says of each; lines in `new` get a tint and a plus.

    limit: how many lines are shown at most; a last line says how many are left out.
    """
    count = len(lines) if limit is None else min(limit, len(lines))
    signs = len(new) > 0
    width = max((len(text) for text in gutter[:count]), default=0)
    left = [
        f"{(gutter[number] if gutter else ''):>{width}}{' +' if number in new else '  ' if signs else ''}"
        for number in range(count)
    ]
    right = [
        span(escape_line(lines[number]) or " ", f"background:{NEW_LINE}")
        if number in new
        else escape_line(lines[number])
        for number in range(count)
    ]
    if count < len(lines):
        left.append("")
        right.append(dim(f"… {len(lines) - count:,} more lines"))
    gutter_style = f"{CODE};text-align:right;padding:4px 8px;opacity:0.75;border-right:1px solid {EDGE}"
    columns = div(html.escape("\n".join(left)), gutter_style) if gutter or signs else ""
    columns += div("\n".join(right), f"{CODE};padding:4px 8px;overflow-x:auto")
    box = f"display:flex;background:{FAINT};border-radius:4px;margin:4px 0 8px 0;overflow:hidden"
    return (div(dim(heading), "font-size:11px;margin:4px 0 0 0") if heading else "") + div(columns, box)


def diagnostic(text_of: TextOf, found: Diagnostic, more: str = "") -> str:
    """One diagnostic as the text report shows it, with a coloured edge."""
    edge, tint, _ = SEVERITY[found.severity]
    shown, above = [], ""
    for row in rows(text_of, found):
        line = ""
        for role, text in row:
            line += _marks(text, above, found) if role == "caret" else _part(role, text)
            above = text if role == "source" else above
        # Sentences may wrap; code and carets scroll together.
        code_row = any(role in ("source", "caret") for role, _ in row)
        shown.append(line if code_row else span(line, "white-space:pre-wrap"))
    style = f"border-left:4px solid {edge};background:{tint};border-radius:4px;margin:6px 0;padding:6px 10px"
    return div(div("\n".join(shown), CODE + ";overflow-x:auto") + more, style)


def _part(role: str, text: str) -> str:
    shown = html.escape(text)
    if role in ("severity", "label", "help", "note"):
        return tag("b", shown)
    return dim(shown) if role in ("gutter", "place") else shown


def _marks(text: str, above: str, found: Diagnostic) -> str:
    """Carets.  Left of them stands the source line itself, unseen, where its characters may not be one cell wide.

    Spaces share their element with the carets: alone between two elements they would be one space on exported pages.
    """
    marks = text.lstrip(" ")
    room = len(text) - len(marks)
    left, spaces = "", room
    if not above.isascii():
        kept, used = "", 0
        for (drawn, width), character in zip(cells(above), above):
            if used >= room and width:
                break
            kept, used = kept + (drawn if len(drawn) == 1 or drawn.isspace() else character), used + width
        left, spaces = span(html.escape(kept), "opacity:0"), room - used
    return left + tag("b", " " * spaces + html.escape(marks))
