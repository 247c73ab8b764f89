"""`%tilelang COMMAND`: explain a code, list devices, show a kernel again, forget compiled kernels."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

from ..source.catalogue import CATALOGUE
from ..source.catalogue.page import Page, UnknownCode, listing, page
from ..source.catalogue.page import explain as explained
from .loading import Loading
from .options import HELP
from .outputs import Outputs
from .shown import Shown, new_ident, report


@dataclass(frozen=True)
class Command:
    """A command of the line magic.

    run: called with IPython's shell, the argument, and the outputs that the notebook shows.  argument: its name in the
    help, "" for none, in brackets where it may be left out.  values: the arguments that completion offers in a shell.
    compiler: does it need the compiler loaded?
    """

    run: Callable[[Any, str, Outputs], None]
    argument: str
    help: str
    values: Callable[[Any], Iterable[str]] = lambda shell: ()
    compiler: bool = False

    def takes(self, argument: str) -> bool:
        """May it be called with this argument, or with none?"""
        return self.argument.startswith("[") or bool(self.argument) == bool(argument)


def run(shell: Any, line: str, loading: Loading, outputs: Outputs) -> None:
    """Carry out a `%tilelang` line; without a command, show the help.  UsageError: no such command."""
    name, _, argument = line.strip().partition(" ")
    argument = argument.strip()
    if name in ("", "--help", "-h", "help"):
        print(HELP)
        return
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean `%tilelang {near[0]}`?" if near else f"the commands are {', '.join(COMMANDS)}"
        raise UsageError(f"%tilelang: there is no command `{name}`; {hint}")
    if not command.takes(argument):
        expected = f"%tilelang {name} {command.argument}".rstrip()
        raise UsageError(f"%tilelang {name}: write `{expected}`")
    if command.compiler:
        loading.wait()
    command.run(shell, argument, outputs)


def explain(shell: Any, code_or_slug: str, _: Outputs) -> None:
    """Show the page of a diagnostic's code or slug; without one, the list of codes."""
    if not code_or_slug:
        print(listing(), end="")
        return
    try:
        found = page(code_or_slug)
    except UnknownCode as unknown:
        raise UsageError(f"%tilelang explain: {unknown}") from None
    display(Shown(explained(code_or_slug), html=as_html(found)))


def as_html(found: Page) -> str:
    """A page for a notebook, in the look of the reports: exported pages set no font for the code of Markdown."""
    from ..report.markup import code, dim, div, escape, listing, sentence, tag

    bad = "Not accepted" if found.severity == "error" else "A text that gives it"
    parts = [
        div(f"{tag('b', escape(found.title))} {dim(code(f'{found.code} {found.slug}'))}", "font-size:15px"),
        div(sentence(found.meaning.replace("\n", " ")), "margin:6px 0 10px 0;max-width:760px"),
    ]
    for heading, text in ((bad, found.bad), ("What is said", found.said), ("Write", found.good)):
        parts += [div(tag("b", heading)), listing(text.rstrip("\n").split("\n"))]
    return div("".join(parts), "margin:8px 0;font-size:13px;line-height:20px")


def operations(shell: Any, word: str, _: Outputs) -> None:
    """List the operations of the language, or those that speak of a word."""
    from ..language.directory import listing

    print(listing(word), end="")


def devices(shell: Any, argument: str, _: Outputs) -> None:
    """List what a kernel can run on here."""
    from ..runtime.target import devices as found

    rows = list(found())
    width = max(len(row.name) for row in rows)
    print("\n".join(f"{row.name:{width}}  {row.description}" for row in rows))


def kernels_of(shell: Any) -> dict[str, Any]:
    """The kernels of the notebook by name; empty until the compiler is loaded, for then there can be none."""
    loaded = sys.modules.get("tilelang_nb.runtime.kernel"), sys.modules.get("tilelang_nb.tilelang")
    if not all(hasattr(module, name) for module, name in zip(loaded, ("Kernel", "EagerFunction"))):
        return {}
    from ..runtime.kernel import Kernel
    from ..tilelang import EagerFunction

    kernels = {}
    for key, value in list(shell.user_ns.items()):
        value = value.kernel if isinstance(value, EagerFunction) else value  # the one compiled or launched last
        if isinstance(value, Kernel) and not key.startswith("_"):
            kernels[key] = value
    return kernels


def inspect(shell: Any, name: str, outputs: Outputs) -> None:
    """Show the stages of a kernel of the notebook again."""
    from ..report.cell_run import CellRun
    from ..tilelang import EagerFunction

    kernels = kernels_of(shell)
    if isinstance(shell.user_ns.get(name), EagerFunction) and name not in kernels:
        raise UsageError(f"%tilelang inspect: `{name}` has no kernel yet; call it, or use `{name}.compile(...)`")
    if name not in kernels:
        near = difflib.get_close_matches(name, kernels, 1)
        there = f"did you mean `{near[0]}`?" if near else f"kernels here: {', '.join(kernels) or 'none'}"
        raise UsageError(f"%tilelang inspect: `{name}` is no kernel of this notebook; {there}")
    if getattr(shell, "kernel", None) is None:
        display(report(kernels[name]))
    else:
        ident = new_ident()
        outputs.show(kernels[name], CellRun(ident, execution=shell.displayhook.prompt_count))


def clear_cache(shell: Any, argument: str, _: Outputs) -> None:
    """Forget compiled kernels, so that the next cell compiles from its text."""
    from ..runtime import cache

    print(f"{cache.forget()} compiled kernels forgotten")


def freeze(shell: Any, name: str, outputs: Outputs) -> None:
    """Put static reports in the place of the widgets; the notebook then shows the same wherever it is opened."""
    shown = sorted(outputs.names())
    if name and name not in shown:
        near = difflib.get_close_matches(name, shown, 1)
        there = f"did you mean `{near[0]}`?" if near else f"shown here: {', '.join(shown) or 'none'}"
        raise UsageError(f"%tilelang freeze: no widget shows a kernel `{name}`; {there}")
    count = outputs.freeze(name)
    print(f"{count} widget{'s' if count != 1 else ''} replaced by static text; run a cell again for its widget")


COMMANDS: dict[str, Command] = {
    "explain": Command(
        explain,
        "[CODE]",
        "the page of a code: what it means, bad and good text",
        lambda shell: CATALOGUE,
        compiler=True,
    ),
    "operations": Command(operations, "[WORD]", "the operations of `T`, or those that speak of a word", compiler=True),
    "devices": Command(devices, "", "what a kernel can run on here"),
    "inspect": Command(inspect, "NAME", "the stages of a kernel of this notebook", kernels_of, compiler=True),
    "clear-cache": Command(clear_cache, "", "forget compiled kernels", compiler=True),
    "freeze": Command(
        freeze, "[NAME]", "put static reports in the place of the widgets, for a page that keeps", kernels_of
    ),
}
