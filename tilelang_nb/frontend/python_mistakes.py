"""What Python's own messages about a text mean for who wrote it: the message in plain words, and one thing to do."""

from __future__ import annotations

import re

from ..source.catalogue import SyntaxMistake

# A pattern of Python's message, what is said in its place ("" for the message itself), and the remedy.
_MEANINGS: tuple[tuple[str, str, str], ...] = (
    (r"expected ':'", "", "add the `:`"),
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
    (
        r"invalid (?:non-printable )?character (.*)",
        "the character {0} is not of Python",
        "write another in its place",
    ),
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
)


def python_mistake(said: str) -> SyntaxMistake:
    """TL005 for a message of Python's parser or compiler."""
    for pattern, problem, remedy in _MEANINGS:
        found = re.match(pattern, said) or (re.search(pattern, said) if pattern.startswith("[") else None)
        if found:
            groups = found.groups()
            return SyntaxMistake(problem=problem.format(*groups) or said, remedy=remedy.format(*groups))
    return SyntaxMistake(problem=said, remedy="correct the line")
