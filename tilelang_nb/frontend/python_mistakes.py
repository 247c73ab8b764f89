"""What Python's own messages about a text mean for who wrote it: the message in plain words, and one thing to do."""

from __future__ import annotations

import re
import unicodedata

from ..source.catalogue import SyntaxMistake

# A pattern of Python's message, what is said in its place ("" for the message itself), and the remedy.
_MEANINGS: tuple[tuple[str, str, str], ...] = (
    (r"expected ':'", "", "add the `:`"),
    (r"expected 'else' after 'if' expression", "", "add what it is otherwise: `x if condition else y`"),
    (r"'(.)' was never closed", "", "add the closing bracket"),
    (r"unmatched '(.)'", "", "leave this bracket out, or open one before it"),
    (r"closing parenthesis .* does not match opening parenthesis", "", "make the two brackets of one kind"),
    (r"unterminated .*string literal", "", "end the text with the quote that it begins with"),
    (r"expected an indented block after", "", "write the block on the lines below, indented by four spaces"),
    (r"unexpected indent", "", "begin the line where the line above begins"),
    (r"unindent does not match", "", "begin the line where a line of the block around begins"),
    (r"inconsistent use of tabs", "", "indent with spaces only"),
    (r"[Pp]erhaps you forgot a comma", "a comma or an operator is missing", "add the `,` or the operator"),
    (r"cannot assign to (.*?)(?: here)?(?:\.|$)", "cannot assign to {0}", "put a name or an element left of `=`"),
    (r"[Mm]aybe you meant '=='", "`=` where a value is compared", "write `==`"),
    (r"positional argument follows keyword", "", "move the arguments without a name before the others"),
    (r"invalid decimal literal", "a number with letters in it", "put a space or an operator between them"),
    (r"leading zeros in decimal", "", "leave the zeros before the number out"),
    (r"(?:f-string: )?invalid syntax", "this is no Python", "correct the line: a word or sign is missing or too many"),
    (r"'(break|continue)' .*loop", "`{0}` outside a loop", "remove it, or put it into a loop"),
    (r"'return' outside function", "", "remove it, or put it into a function"),
    (r"duplicate argument '(.*)'", "", "give each parameter a name of its own"),
    (r"keyword argument repeated", "", "give it once"),
    (r"'(?:await|async for|async with)' outside|asynchronous comprehension outside", "", "put it into an `async def`"),
    (r"'yield(?: from)?' (?:outside|inside)", "", "put it into the body of a function"),
    (r"no binding for nonlocal|nonlocal declaration not", "", "remove it, or bind the name in a function around this"),
    (r"name '(.*)' is parameter and (.*)", "", "remove it, or rename the parameter"),
    (r"name .* before (global|nonlocal)", "", "put the `{0}` first in its function"),
    (r"annotated name '.*' can't be", "", "leave the annotation out"),
    (r"import \* only allowed", "", "import at the top of the cell"),
    (r"can't use starred expression here", "", "leave the `*` out, or add a comma: `*x,`"),
    (r"multiple starred", "", "leave all but one `*` out"),
    (r"starred assignment target", "", "add a comma: `*x, = ...`"),
    (r"assignment expression", "", "bind the name in a statement of its own before"),
    (r".*makes remaining patterns unreachable", "", "put this case last"),
    (r"multiple assignments to name|attribute name repeated", "", "use each name once"),
    (r"default 'except:' must be last", "", "put it last"),
    (
        r"too many (?:nested parentheses|statically nested blocks)",
        "",
        "split it, with names or `@T.macro` for the parts",
    ),
)
_CHARACTER = re.compile(r"invalid (?:non-printable )?character (.*U\+([0-9A-F]{4,6})\)?)")
# Characters that editors, chats and pages put in the place of Python's.
_MEANT = {
    "“”„‟″«»": '"',
    "‘’‚‛′´": "'",
    "−–—‐‑‒―": "-",
    "×∗·": "*",
    "÷⁄∕": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "→": "->",
}
_MEANT_BY = {character: meant for characters, meant in _MEANT.items() for character in characters}


def python_mistake(said: str) -> SyntaxMistake:
    """TL005 for a message of Python's parser or compiler."""
    character = _CHARACTER.match(said)
    if character is not None:
        problem = f"the character {character[1]} is not of Python"
        return SyntaxMistake(problem=problem, remedy=_in_its_place(chr(int(character[2], 16))))
    for pattern, problem, remedy in _MEANINGS:
        found = re.match(pattern, said) or (re.search(pattern, said) if pattern.startswith("[") else None)
        if found:
            groups = found.groups()
            return SyntaxMistake(problem=problem.format(*groups) or said, remedy=remedy.format(*groups))
    return SyntaxMistake(problem=said, remedy="correct the line")


def _in_its_place(character: str) -> str:
    """What to write for a character that is not of Python."""
    category = unicodedata.category(character)
    if category == "Zs":
        return "put a space in its place"
    if category in ("Cf", "Cc"):
        return "remove the character"
    plain = _MEANT_BY.get(character) or unicodedata.normalize("NFKC", character)
    if plain.isascii() and plain.isprintable():
        return f"write `{plain}` in its place"
    return "write another in its place"
