"""The states a name can be in, and the frame that holds the names of one instance of a kernel or macro.

Expressions are evaluated with the frame's `Namespace` as *globals*, never locals: code nested in an expression
(comprehension, generator, lambda) finds free names only among globals and sees later bindings, which is Python's late
binding.  The dict itself holds plainly available names.  A name in any other state is *absent*, so CPython calls
`__missing__`: reading costs nothing until it needs thought.

    Plain     bound; its value is in the dict
    Mutable   a per-thread scalar in memory: each read makes a fresh load
    Hidden    bound before a device loop whose body may re-bind it: a read here is loop-carried
    Conflict  different bindings met after a branch or loop: decided when read
    Gone      unbound on some path, or its loop is over: a read is refused
    POISON    its binding was refused: a read drops the statement silently
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Message, Poisoned, Refusal
from ..source.foreign_names import for_name
from ..source.text import Text
from .scopes import Scope

MISSING = object()
INTRINSICS = "__tl"  # the one name that rewritten expressions need; no identifier of a user looks like it

Site = tuple[Any, ...]  # (path of macro calls, turns of compile-time loops, name, line, column)


@dataclass(eq=False)
class Plain:
    """value: a Python object or device value.  site: where it was bound.  scope: the scope it was bound in."""

    value: Any
    site: Site
    node: Any
    scope: Scope


@dataclass(eq=False)
class Mutable:
    """buffer: a variable of one element.  explicit: `T.alloc_var`, or a `T.Ref` parameter."""

    buffer: Any
    scope: Scope
    site: Site
    explicit: bool = False


@dataclass(eq=False)
class Hidden:
    """outside: the binding before the loops; a Mutable only for `T.Parallel`.

    scopes: the open loops that may re-bind it.
    """

    outside: Plain | Mutable
    scopes: list[Scope]


@dataclass(eq=False)
class Conflict:
    """bindings: what the name may hold.  site: where a mutable scalar for all of them would be declared.

    node: the re-binding, for messages.  meeting: the site of the branch or loop where the bindings met, where a
    scalar can begin with what the name holds.  parallel: the node that binds the name in a `T.Parallel` loop
    whose last iteration decides what it holds, or None.
    """

    bindings: list[Plain | Mutable | Hidden]
    site: Site
    node: Any
    meeting: Site
    parallel: Any = None


@dataclass(eq=False)
class Gone:
    """The state of a name whose value ended with its loop or branch: reading it is refused with `message`."""

    message: Message


class Poison:
    """The state of a name that a refused statement would have bound: using it says nothing more."""

    def __repr__(self) -> str:
        return "POISON"


POISON = Poison()
UNBOUND = frozenset(("TL130", "TL131"))  # codes of names that are gone without a value
Binding = Plain | Mutable | Hidden | Conflict | Gone | Poison


class Namespace(dict):
    """Globals of compiled expressions: CPython asks `__missing__` of a subclass of dict for absent names."""

    __slots__ = ("frame",)
    frame: Frame

    def __missing__(self, name: str) -> Any:
        return self.frame.resolve(name)


@dataclass(frozen=True)
class Outer:
    """Names outside a kernel: closure cells, then the module, then built-ins; all read when asked, as Python does.

    skipped: names that statements which did not run would have bound; they give no second message.
    """

    cells: Mapping[str, Any]
    module: Mapping[str, Any]
    builtins: Mapping[str, Any] = field(default_factory=lambda: vars(builtins))
    skipped: set[str] = field(default_factory=set)

    def look_up(self, name: str) -> Any:
        """The value, or MISSING."""
        cell = self.cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:  # not bound yet
                return MISSING
        found = self.module.get(name, MISSING)
        if found is MISSING:
            found = self.builtins.get(name, MISSING)
        if found is MISSING and name in self.skipped:
            raise Poisoned
        return found

    def names(self) -> Iterator[str]:
        """Names of the user, without built-ins."""
        for names in (self.cells, self.module):
            yield from (name for name in names if not name.startswith("__"))


@dataclass(eq=False)
class Frame:
    """One instance of a kernel or macro.

    path: the calls that lead here; it identifies the instance across restarts.  local_names: names its text binds.
    entry: the scope it was entered in.  text: the text its nodes belong to.  codes: compiled expressions of that text.
    read_conflict: decides what a Conflict means.  note_read: told of reads of mutable scalars and of hidden
    names.  remember: told of
    mutable objects that come from outside.  caller: the frame that called this macro.
    """

    path: tuple[Any, ...]
    local_names: frozenset[str]
    outer: Outer
    entry: Scope
    text: Text
    codes: dict[Any, Any]
    read_conflict: Callable[[Frame, str, Conflict], Any]
    note_read: Callable[[Frame, str, Mutable | Hidden], None]
    remember: Callable[[Any], None]
    caller: Frame | None = None
    states: dict[str, Binding] = field(default_factory=dict)
    origins: dict[str, tuple[Site, Any, Scope]] = field(default_factory=dict)  # site, node and scope of plain names
    turns: tuple[int, ...] = ()  # of the compile-time loops of this frame that are at work
    calls: int = 0  # macros called by the statement at hand
    failures: int = 0  # statements of the build that were refused before this macro was called
    refused: Mapping[ast.stmt, Diagnostic] = field(default_factory=dict)  # statements that Python does not compile
    names: Namespace = field(default_factory=Namespace)

    def __post_init__(self) -> None:
        self.names.frame = self

    def site(self, name: str, node: ast.AST) -> Site:
        """The place of a binding, the same in every pass."""
        return (self.path, self.turns, name, node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def binding(self, name: str) -> Binding | None:
        state = self.states.get(name)
        if state is not None:
            return state
        if name in self.origins and name in self.names:
            return Plain(self.names[name], *self.origins[name])
        return None

    def set(self, name: str, binding: Binding | None) -> None:
        self.states.pop(name, None)
        if isinstance(binding, Plain):
            self.names[name] = binding.value
            self.origins[name] = (binding.site, binding.node, binding.scope)
            return
        self.names.pop(name, None)
        if binding is not None:
            self.states[name] = binding

    def resolve(self, name: str) -> Any:
        """The value of a name that is not plainly bound, or a refusal."""
        state = self.states.get(name)
        if isinstance(state, Mutable):
            self.note_read(self, name, state)
            return state.buffer[(0,)]
        if isinstance(state, Hidden):
            self.note_read(self, name, state)
            return state.outside.value if isinstance(state.outside, Plain) else state.outside.buffer[(0,)]
        if isinstance(state, Conflict):
            return self.read_conflict(self, name, state)
        if isinstance(state, Gone):
            raise Refusal(state.message)
        if state is POISON:
            raise Poisoned
        if name not in self.local_names:
            value = self.outer.look_up(name)
            if value is not MISSING:
                self.remember(value)
                return value
        elif self.outer.look_up(name) is not MISSING:
            remedy = f"`{name}` is assigned in this function, so it is local here: bind another name to the outer one"
            raise Refusal(say.UndefinedName(name=name, remedy=remedy))
        raise Refusal(bound_elsewhere(name) if name in self.local_names else undefined(name, self.known()))

    def known(self) -> list[str]:
        """Names that a misspelt one may mean."""
        own = [name for name in self.names if not name.startswith("__")]
        return [*own, *self.states, *self.outer.names()]


def is_operation(name: str) -> bool:
    """Whether `T.name` exists."""
    from .static.surface import SUGGESTED  # the table lies in a part that is built on this one

    return name in SUGGESTED


MODULES = ("np", "T", "tl", "plt")  # as they are imported: short, like many names, and seldom meant by another


def undefined(name: str, known: Iterable[str], otherwise: str = "assign it first") -> Message:
    """TL002 with the known name that is nearest, or with another remedy."""
    meant = for_name(name)  # more often meant than misspelt
    if meant:
        return say.UndefinedName(name=name, remedy=meant)
    if is_operation(name):
        return say.UndefinedName(name=name, remedy=f"write `T.{name}`", near=f"T.{name}")
    others = [other for other in known if other != name]
    near = difflib.get_close_matches(name, [other for other in others if other not in MODULES], 1)
    near = near or difflib.get_close_matches(name, [other for other in others if other in MODULES], 1, 0.75)
    # Built-in names are many and short: only one that differs in a letter is meant.
    near = near or difflib.get_close_matches(name, [n for n in dir(builtins) if not n.startswith("__")], 1, 0.85)
    remedy = f"did you mean `{near[0]}`?" if near else otherwise
    return say.UndefinedName(name=name, remedy=remedy, near=near[0] if near else "")


def unbound_at_first(name: str) -> Message:
    """TL130 for a name that a loop reads before its body has bound it."""
    return say.MaybeUnbound(name=name, what="the loop", how="has no value in the first turn of the loop")


def bound_elsewhere(name: str) -> Message:
    """TL002 for a name that its function binds, but not on the way that leads here."""
    meant = for_name(name)
    remedy = (
        "assign it first, before this line and before a loop that keeps it: it is assigned elsewhere in this function"
    )
    return say.UndefinedName(name=name, remedy=meant or remedy)


def bound_names(*nodes: ast.AST) -> tuple[str, ...]:
    """Names that these nodes bind or delete in their own scope, in the order of the text.

    Targets of comprehensions, and what is inside functions, are not among them.  No recursion: texts may nest deeply.
    """
    found: dict[str, None] = {}
    pending = list(reversed(nodes))
    while pending:
        node = pending.pop()
        children: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found[node.id] = None
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = None
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(dict.fromkeys((alias.asname or alias.name).split(".")[0] for alias in node.names))
            continue
        if isinstance(node, ast.comprehension):
            children = (node.iter, *node.ifs)
        elif isinstance(node, ast.Lambda):
            children = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
        else:
            name = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name", None)
            if isinstance(name, str):  # of a pattern, or of an exception handler
                found[name] = None
        pending.extend(reversed(list(children)))
    return tuple(found)


def only_augmented(node: ast.AST) -> frozenset[str]:
    """Names that a statement binds by augmented assignments only, which need a value to begin with."""
    targets = {id(part.target) for part in ast.walk(node) if isinstance(part, ast.AugAssign)}
    stores = [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    plain = {part.id for part in stores if id(part) not in targets}
    return frozenset(part.id for part in stores if id(part) in targets) - plain


def changed_names(node: ast.AST) -> Iterator[str]:
    """Names whose objects a statement may change in place: `x[0] = y`, `x.append(y)`, `x += y`."""
    for part in ast.walk(node):
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            owner: ast.AST = part.target
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            owner = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            owner = part.func.value
        else:
            continue
        while isinstance(owner, (ast.Subscript, ast.Attribute)):
            owner = owner.value
        if isinstance(owner, ast.Name):
            yield owner.id


def targets(node: ast.expr) -> Any:
    """The names of a target: one name, a tuple of such, a set of one for a starred one; None for other places.

    All of them may stand in a constant of compiled code.
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple([targets(part) for part in node.elts])
    if isinstance(node, ast.Starred):
        return frozenset([targets(node.value)])
    return None
