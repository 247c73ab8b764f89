"""Numbers on a device are those of the simulated one, bit for bit where the operation is exactly defined.

Conversions, rounding, division, comparisons, integers and shifts are exact on both; elementary functions differ in the
last places, by no more than CUDA's documentation allows.
"""

from __future__ import annotations

import numpy as np
import pytest
from device.quotients import FORMS, check_quotients, shared_divisors, tile_cell

import tilelang_nb
from tilelang_nb.runtime.host_arrays import host_dtype

# Patterns are of any kind: NumPy says so of signalling NaN and of results beyond the type.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
COUNT = 1 << 16
FLOATS = ["float16", "bfloat16", "float32", "float64"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
# Function, and how many units in the last place of float32 it may be away.
FUNCTIONS = {
    "exp": 2, "exp2": 2, "exp10": 3, "log": 2, "log2": 2, "log10": 3, "log1p": 2, "sqrt": 1, "rsqrt": 2, "tanh": 3,
    "sinh": 4, "cosh": 3, "asin": 3, "acos": 3, "atan": 3, "erf": 3, "sigmoid": 5,
}  # fmt: skip
EXACT = ["floor", "ceil", "trunc", "nearbyint", "round", "abs", "-", "isnan", "isinf", "isfinite"]


def numbers(dtype: str, seed: int = 1) -> np.ndarray:
    """All patterns of narrow types, random patterns and telling numbers of wide ones."""
    kind = host_dtype(dtype)
    assert kind is not None
    if dtype == "bool":
        return np.arange(COUNT) % 3 == 0
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 64, COUNT, dtype=np.uint64)
    if kind.itemsize <= 2:
        bits = np.arange(COUNT, dtype=np.uint64) if seed == 1 else random.permutation(COUNT).astype(np.uint64)
    found = bits.astype(f"u{kind.itemsize}").view(kind)
    if dtype in ("float32", "float64"):
        found[: COUNT // 2] = (random.standard_normal(COUNT // 2) * 10.0 ** random.integers(-6, 12, COUNT // 2)).astype(
            kind
        )
        telling = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128.0, -128.5, 255.5, 448.0, 464.0, 464.1, 57344.0]
        telling += [61439.9, 61440.0, 65504.0, 65519.9, 65520.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 2.0**64, np.inf]
        found[: len(telling)] = telling
    return found


def run(body: str, inputs: dict[str, np.ndarray], outputs: dict[str, str]) -> tuple[dict, dict]:
    """The outputs of an element-wise body on the device and on the simulated one."""
    tensors = [f'{name}: T.Tensor(({COUNT},), "{dtype}")' for name, dtype in outputs.items()]
    tensors += [f'{name}: T.Tensor(({COUNT},), "{array.dtype.name}")' for name, array in inputs.items()]
    lines = "".join(f"            {line}\n" for line in body.split("\n"))
    cell = (
        f"@T.prim_func\ndef k({', '.join(tensors)}):\n    with T.Kernel({COUNT // 1024}, threads=128) as bx:\n"
        f"        for t in T.Parallel(1024):\n            i = bx * 1024 + t\n{lines}"
    )
    found = []
    for target in ("cuda", "sim"):
        compilation = tilelang_nb.compile_cell(cell, target=target)
        assert compilation.ok, compilation.to_text()
        arrays = {name: np.zeros(COUNT, host_dtype(dtype)) for name, dtype in outputs.items()}
        compilation.kernels["k"](*arrays.values(), *[array.copy() for array in inputs.values()])
        found.append(arrays)
    return found[0], found[1]


def check_bits(device: np.ndarray, simulated: np.ndarray, inputs: list[np.ndarray], what: str) -> None:
    """Equal in every bit; one NaN is as good as another."""
    same = device.view(f"u{device.dtype.itemsize}") == simulated.view(f"u{device.dtype.itemsize}")
    if device.dtype.kind not in "iub":
        same |= (device != device) & (simulated != simulated)
    at = np.flatnonzero(~same)[:5]
    said = [(*(one.flat[n] for one in inputs), device.flat[n], simulated.flat[n]) for n in at]
    assert same.all(), f"{what}: {np.count_nonzero(~same)} differ: {said}"


@pytest.mark.parametrize("source", [*FLOATS, *FLOAT8, *INTEGERS, "bool"])
def test_conversions(source: str) -> None:
    targets = [target for target in (*FLOATS, *FLOAT8, *INTEGERS, "bool") if target != source]
    a = numbers(source)
    device, simulated = run(
        "\n".join(f'o_{target}[i] = T.cast(a[i], "{target}")' for target in targets),
        {"a": a},
        {f"o_{target}": target for target in targets},
    )
    for target in targets:
        check_bits(device[f"o_{target}"], simulated[f"o_{target}"], [a], f"{source} to {target}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_functions(dtype: str) -> None:
    a = numbers(dtype)
    outputs = {f"o{n}": "bool" if name.startswith("is") else dtype for n, name in enumerate(EXACT)}
    body = "\n".join(f"o{n}[i] = {'-a[i]' if name == '-' else f'T.{name}(a[i])'}" for n, name in enumerate(EXACT))
    device, simulated = run(body, {"a": a}, outputs)
    for n, name in enumerate(EXACT):
        check_bits(device[f"o{n}"], simulated[f"o{n}"], [a], name)


@pytest.mark.parametrize("dtype", [*FLOATS, *FLOAT8])
def test_arithmetic(dtype: str) -> None:
    a, b = numbers(dtype), numbers(dtype, 2)
    operations = {"add": "a[i] + b[i]", "sub": "a[i] - b[i]", "mul": "a[i] * b[i]", "div": "a[i] / b[i]"}
    operations |= {"max": "T.max(a[i], b[i])", "min": "T.min(a[i], b[i])"}
    if dtype not in FLOAT8:
        operations |= {"floordiv": "a[i] // b[i]", "mod": "a[i] % b[i]", "fmod": "T.fmod(a[i], b[i])"}
    body = "\n".join(f"{name}[i] = {text}" for name, text in operations.items())
    body += "\nless[i] = a[i] < b[i]\nsame[i] = a[i] == b[i]"
    outputs = {**dict.fromkeys(operations, dtype), "less": "bool", "same": "bool"}
    device, simulated = run(body, {"a": a, "b": b}, outputs)
    for name in outputs:
        got, want = device[name], simulated[name]
        if name in ("max", "min"):  # which zero is larger is not said
            got, want = got + np.zeros(1, got.dtype), want + np.zeros(1, want.dtype)
        if name in ("floordiv", "mod") and dtype == "float64":
            continue  # NumPy's own quotient is off by one where it is beyond 2 ** 53
        check_bits(got, want, [a, b], f"{name} of {dtype}")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    a, b = numbers(dtype), numbers(dtype, 2)
    b[b == 0] = 1
    if dtype.startswith("int"):
        b[b == -1] = 3  # the smallest integer by -1 has no quotient
    shift = (np.abs(b.astype(np.int64)) % (8 * b.itemsize)).astype(b.dtype)
    operations = {"add": "a[i] + b[i]", "mul": "a[i] * b[i]", "floordiv": "a[i] // b[i]", "mod": "a[i] % b[i]"}
    operations |= {"left": "a[i] << s[i]", "right": "a[i] >> s[i]", "xor": "a[i] ^ b[i]", "inverse": "~a[i]"}
    operations |= {"max": "T.max(a[i], b[i])", "absolute": "abs(a[i])"}
    device, simulated = run(
        "\n".join(f"{name}[i] = {text}" for name, text in operations.items()),
        {"a": a, "b": b, "s": shift},
        dict.fromkeys(operations, dtype),
    )
    for name in operations:
        check_bits(device[name], simulated[name], [a, b, shift], f"{name} of {dtype}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(name: str) -> None:
    a = numbers("float32")
    a = np.where(np.abs(a) < 80, a, np.float32(0.3)).astype(np.float32)
    if name in ("log", "log2", "log10", "sqrt", "rsqrt", "log1p"):
        a = np.abs(a) + np.float32(1e-6)
    if name in ("asin", "acos"):
        a = np.tanh(a)
    device, simulated = run(f"o[i] = T.{name}(a[i])", {"a": a}, {"o": "float32"})
    got, want = device["o"].astype(np.float64), simulated["o"].astype(np.float64)
    ulp = np.spacing(np.maximum(np.abs(simulated["o"]), np.float32(1e-30))).astype(np.float64)
    off = np.abs(got - want) / ulp
    worst = int(np.nanargmax(off))
    assert np.nanmax(off) <= FUNCTIONS[name] + 2, (a[worst], got[worst], want[worst], off[worst])
    assert np.array_equal(np.isnan(got), np.isnan(want))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_reductions_with_nan(dtype: str) -> None:
    """NaN in a row is the result of that row."""
    random = np.random.default_rng(3)
    a = (random.standard_normal((64, 512)) * 100).astype(host_dtype(dtype))
    if dtype != "int32":
        a[3, 100], a[5, :], a[7, 0] = np.nan, np.inf, -np.inf
    cell = f"""
@T.prim_func
def k(a: T.Tensor((64, 512), "{dtype}"), low: T.Tensor((64,), "{dtype}"), high: T.Tensor((64,), "{dtype}")):
    with T.Kernel(64, threads=128) as b:
        x = T.alloc_fragment((1, 512), "{dtype}")
        s, m = T.alloc_fragment((1,), "{dtype}"), T.alloc_fragment((1,), "{dtype}")
        T.copy(a[b, 0], x)
        T.reduce_max(x, m, dim=1)
        T.reduce_min(x, s, dim=1)
        T.copy(m, high[b])
        T.copy(s, low[b])
"""
    results = []
    for target in ("cuda", "sim"):
        low, high = np.zeros(64, a.dtype), np.zeros(64, a.dtype)
        tilelang_nb.compile_cell(cell, target=target).kernels["k"](a, low, high)
        results.append((low, high))
    for got, want in zip(*results):
        check_bits(got, want, [], f"reduction of {dtype}")


def test_rows_divided_by_one_number() -> None:
    """As `/`, but for quotients below 2 ** -100, and the largest number."""
    random = np.random.default_rng(5)
    a = (random.standard_normal((512, 1024)) * 10.0 ** random.integers(-25, 25, (512, 1024))).astype(np.float32)
    b = (random.standard_normal(512) * 10.0 ** random.integers(-38, 38, 512)).astype(np.float32)
    a[:, :6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    b[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 1.0]
    b[8:72] = (np.arange(0x3FFFFFC0, 0x40000000, dtype=np.uint32)).view(np.float32)
    a[8:72] = (random.integers(0x3F800000, 0x40000000, (64, 1024)).astype(np.uint32)).view(np.float32)
    cell = """
@T.prim_func
def k(a: T.Tensor((512, 1024), "float32"), b: T.Tensor((512,), "float32"), o: T.Tensor((512, 1024), "float32")):
    with T.Kernel(512, threads=128) as r:
        f, s = T.alloc_fragment((1, 1024), "float32"), T.alloc_fragment((1,), "float32")
        T.copy(a[r, 0], f)
        s[0] = b[r]
        for i, j in T.Parallel(1, 1024):
            f[i, j] = f[i, j] / s[i]
        T.copy(f, o[r, 0])
"""
    kernel = tilelang_nb.compile_cell(cell, target="cuda").kernels["k"]
    assert "tl_divide(" in kernel.cuda_source
    o = np.zeros_like(a)
    kernel(a, b, o)
    with np.errstate(all="ignore"):
        want = a / b[:, None]
    check_quotients(o, a, np.broadcast_to(b[:, None], a.shape))
    assert np.allclose(o, want, rtol=3e-7, atol=1e-44, equal_nan=True)


@pytest.mark.parametrize("out", ["float32", "float16"])
@pytest.mark.parametrize("form", FORMS)
def test_loops_that_share_divisors(form: str, out: str) -> None:
    """Quotients next to the middle of two numbers, and numbers of every kind, in each of the texts that have one."""
    rows = 4096
    a, b = shared_divisors(rows, 64, 7)
    if form == "product":  # by ones: numerators are finite float16
        a = np.random.default_rng(8).integers(0, 0x7C00, a.shape, dtype=np.uint16).view(np.float16).astype(np.float32)
    given = a.reshape(-1, 64, 64).swapaxes(1, 2).reshape(a.shape).copy() if form == "columns" else a
    o = np.zeros(a.shape, out)
    kernel = tilelang_nb.compile_cell(tile_cell(form, rows, out), target="cuda").kernels["k"]
    assert "tl_divide(" in kernel.cuda_source
    kernel(given, b, o)
    got = o.reshape(-1, 64, 64).swapaxes(1, 2).reshape(a.shape).copy() if form == "columns" else o
    b = np.broadcast_to(b[:, None], a.shape)
    if out == "float32":
        check_quotients(got, a, b)
    else:  # what may differ in the last place is 0 or infinity
        check_bits(got, (a / b).astype(np.float16), [a, b], form)
