"""A builder that records, so that operations can be called one by one without the front end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tvm import tirx as tir

import tilelang_nb.language as T
from tilelang_nb.language import tile_program
from tilelang_nb.language.promotion import in_ir
from tilelang_nb.language.values import Buffer, Region, Value, building
from tilelang_nb.source.diagnostic import Message, Refusal


class Launch:
    def __init__(self, threads: tuple[int, ...], blocks: tuple[Any, ...], cluster: tuple[int, int, int] = (1, 1, 1)):
        self.cluster = cluster
        self.threads = tuple((tir.Var(f"t{'xyz'[at]}", "int32"), n) for at, n in enumerate(threads))
        self.blocks = tuple((tir.Var(f"b{'xyz'[at]}", "int32"), n) for at, n in enumerate(blocks))


class Recorder:
    """The builder protocol of `language.values.Builder`, keeping what operations emit."""

    def __init__(self) -> None:
        self.statements: list[Any] = []
        self.warnings: list[Message] = []
        self.pending: list[Any] = []
        self.layouts: dict[str, Any] = {}
        self.hint: str | None = None
        self.span = self.scope = None
        self.launch: Launch | None = Launch((64, 2), (10,))

    def emit(self, statement: Any) -> None:
        self.statements.append(statement)

    def effect(self) -> None:
        pending, self.pending = self.pending, []
        for reference in pending:
            value = reference()
            if value is not None and value.reads:
                value.expr, value.reads = self.bind("kept", value.expr, value.dtype), False

    def bind(self, name: str, expr: Any, dtype: str) -> Any:
        var = tir.Var(name, in_ir(dtype))
        self.emit(tir.Bind(var, expr, self.span))
        return var

    def _encode(self, operand: Any) -> Any:
        if isinstance(operand, Buffer):
            operand = T_whole(operand)
        if isinstance(operand, Region):
            index = operand.buffer.index_expr
            return tile_program.region(
                operand.buffer.var, [index(i) for i in operand.begin], [index(n) for n in operand.extent]
            )
        return operand.use() if isinstance(operand, Value) else operand

    def operation(self, name: str, *operands: Any, dtype: str = "void") -> Value | None:
        encoded = [self._encode(operand) for operand in operands]
        self.effect()
        call = tile_program.operation(name, *encoded, dtype=dtype)
        if dtype == "void":
            self.emit(tir.Evaluate(call, self.span))
            return None
        return Value(self.bind(name, call, dtype), dtype)

    def allocate(self, name: str, shape: Any, dtype: str, memory: str) -> Buffer:
        var = tir.decl_buffer(shape, in_ir(dtype), name, scope=memory, layout=None)
        self.emit(tir.AllocBuffer(var, None, self.span))
        return Buffer(name, shape, dtype, memory, var)

    def store(self, buffer: Buffer, index: Any, value: Any) -> None:
        from tilelang_nb.language.operands import stored

        expr = stored(value, buffer.name, buffer.dtype).use()
        self.effect()
        self.emit(tir.BufferStore(buffer.var, expr, [buffer.index_expr(i) for i in index], self.span))

    def warn(self, message: Message) -> None:
        self.warnings.append(message)

    # -- for the tests ---------------------------------------------------------------------------------------------
    def buffer(self, name: str, shape: Any, dtype: str = "float32", memory: str = "global") -> Buffer:
        """A parameter or tile that was there before."""
        sizes = [extent.use() if isinstance(extent, Value) else extent for extent in shape]
        return Buffer(name, shape, dtype, memory, tir.decl_buffer(sizes, in_ir(dtype), name, scope=memory, layout=None))

    @property
    def calls(self) -> list[tile_program.TileCall]:
        """The tile operations emitted, read back from the IR."""
        found = []
        for statement in self.statements:
            value = getattr(statement, "value", None)
            if tile_program.operation_name(value) is not None:
                found.append(tile_program.read(value))
        return found

    @property
    def text(self) -> str:
        return "\n".join(str(statement) for statement in self.statements)


def T_whole(buffer: Buffer) -> Region:
    from tilelang_nb.language.operands import whole

    return whole(buffer)


@pytest.fixture
def kernel() -> Iterator[Recorder]:
    """A kernel being built: 64 x 2 threads, a grid of 10 blocks."""
    recorder = Recorder()
    with building(recorder):
        yield recorder


@contextmanager
def refusing(code: str, *texts: str) -> Iterator[None]:
    with pytest.raises(Refusal) as caught:
        yield
    message = caught.value.message
    said = f"{message.fill(message.text)} | {message.fill(message.advice)}"
    assert caught.value.code == code, said
    for text in texts:
        assert text in said


@pytest.fixture
def refused() -> Callable[..., Any]:
    """`with refused("TL204", "(64, 32)"):` holds when the body is refused with that code and those texts."""
    return refusing


@pytest.fixture
def device() -> Callable[[str, str], Value]:
    """A device value of a dtype: `device("x", "float32")`."""
    return lambda name, dtype="float32": Value(tir.Var(name, in_ir(dtype)), dtype)


__all__ = ["T"]
