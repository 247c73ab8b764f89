"""Time the kernels of tests/kernels on a GPU and print one line of JSON for each, torch's time beside it.

    python tests/benchmarks/device.py [--only WORD] [--repeat N] [--out FILE]

A result is checked against torch in double precision before it is timed, and a kernel whose check fails has no time.
compile_s: from the cell's text to code loaded on the device, in a process that has compiled before, nothing from a
cache; the median of five texts.  ms: median of single launches between events, the second-level cache flushed before each.  host_us: of the host
for a call with torch tensors, 200 calls in a row.  Ratios to torch are of one run on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Nothing compiled before: neither this package's cache nor the one that NVRTC shares with the driver.
os.environ |= {"TILELANG_NB_CACHE_DIR": "", "CUDA_CACHE_DISABLE": "1"}
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1])]
TEXT = (HERE.parent / "kernels" / "factories.py").read_text(encoding="utf-8")
WARM_UP = 'def k(A: T.Tensor((64,), "float16")):\n    with T.Kernel(1, threads=64):\n        A[0] = A[1]\n'


@dataclass(frozen=True)
class Case:
    """make: the call that gives the kernel.  arguments, reference: functions of torch; the last argument is written.

    peer: what torch is timed at.  tolerance: of the norm of the difference.
    """

    name: str
    make: str
    arguments: Callable[[Any], tuple[Any, ...]]
    reference: Callable[..., Any]
    peer: Callable[..., Any]
    tolerance: float = 2e-3


def half(torch: Any, *shape: int) -> Any:
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def square(torch: Any, size: int) -> tuple[Any, ...]:
    return half(torch, size, size), torch.empty((size, size), device="cuda", dtype=torch.float16)


def rms(x: Any, y: Any) -> Any:
    return x * (x * x).mean(1, keepdim=True).add(1e-6).rsqrt()


def attention(causal: bool) -> Callable[..., Any]:
    def reference(q: Any, k: Any, v: Any, out: Any) -> Any:
        import torch

        parts = (x.transpose(1, 2) for x in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal).transpose(1, 2)

    return reference


def sums(torch: Any, count: int) -> tuple[Any, ...]:
    return tuple(torch.randn(count, device="cuda") for _ in range(2)) + (torch.empty(count, device="cuda"),)


def product(a: Any, b: Any, c: Any) -> Any:
    return a @ b


def heads(torch: Any) -> tuple[Any, ...]:
    return tuple(half(torch, 4, 4096, 32, 128) for _ in range(4))


def cases() -> list[Case]:
    import torch

    f = torch.nn.functional
    found = [
        Case(
            "vector_add",
            "vector_add(T, 1 << 26)",
            lambda t: sums(t, 1 << 26),
            lambda a, b, c: a + b,
            lambda a, b, c: a + b,
        ),
        Case(
            "vector_add_4096",
            "vector_add(T, 4096)",
            lambda t: sums(t, 4096),
            lambda a, b, c: a + b,
            lambda a, b, c: a + b,
        ),
        Case(
            "softmax",
            "softmax(T, 8192, 8192)",
            lambda t: square(t, 8192),
            lambda x, y: x.softmax(1),
            lambda x, y: x.softmax(1),
        ),
        Case(
            "rms_norm",
            "rms_norm(T, 8192, 8192)",
            lambda t: square(t, 8192),
            rms,
            lambda x, y: f.rms_norm(x, (8192,), eps=1e-6),
        ),
        Case(
            "gemv",
            "gemv(T, 16384, 16384)",
            lambda t: (half(t, 16384), half(t, 16384, 16384), t.empty(16384, device="cuda", dtype=t.float16)),
            lambda x, w, y: w @ x,
            lambda x, w, y: w @ x,
        ),
    ]
    tiles = ("128, 128, 32, 3, 128", "128, 256, 32, 4, 256", "128, 256, 64, 3, 256")
    for size, blocks in ((size, blocks) for size in (4096, 8192) for blocks in tiles):
        name = f"matmul_{size}_{'x'.join(blocks.split(', ')[:3])}"
        make = f"matmul(T, {size}, {size}, {size}, {blocks})"
        arguments = lambda t, size=size: (half(t, size, size), *square(t, size))
        found.append(Case(name, make, arguments, product, product))
    for causal, blocks in ((causal, blocks) for blocks in ("128, 128, 2, 256", "128, 64, 2, 128") for causal in (0, 1)):
        name = f"flash_{'causal' if causal else 'full'}_{'x'.join(blocks.split(', ')[:2])}"
        make = f"flash_attention(T, 4, 32, 4096, 128, {bool(causal)}, {blocks})"
        found.append(Case(name, make, heads, attention(bool(causal)), attention(bool(causal)), 1e-2))
    return found


def compiled(case: Case, times: int = 5) -> tuple[Any, float]:
    """The kernel, and the seconds from the text to its code on the device."""
    import tilelang_nb
    from tilelang_nb.runtime import cache, device_launch, numba_device

    devices = numba_device.devices()
    devices.activate(0)
    seconds = []
    for turn in range(times):
        cache.clear()
        begin = time.perf_counter()
        c = tilelang_nb.compile_cell(f"{TEXT}\n\nturn = {turn}\nkernel = {case.make}\n", target="cuda")
        if not c.ok:
            raise SystemExit(c.to_text())
        kernel = c.namespace["kernel"].compile()
        kernel.build().loaded(device_launch.device(devices, 0))
        seconds.append(time.perf_counter() - begin)
    return kernel, statistics.median(seconds)


def measured(case: Case, repeat: int | None) -> dict[str, Any]:
    """The fields of one line."""
    import torch

    torch.manual_seed(0)
    kernel, seconds = compiled(case)
    arguments = case.arguments(torch)
    out = arguments[-1].fill_(float("nan"))
    kernel(*arguments)
    # Row by row in double precision: a whole operand would not fit beside the others.
    want = reference(case, arguments)
    error = float((out.double() - want.double()).norm() / want.double().norm())
    line = {"name": case.name, "compile_s": round(seconds, 3), "error": error}
    del want
    if not error < case.tolerance:
        return {**line, "failed": f"error above {case.tolerance}"}
    result = kernel.bench(*arguments, baseline=lambda: case.peer(*arguments), repeat=repeat)
    for _ in range(3):
        kernel(*arguments)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(200):
        kernel(*arguments)
    host = (time.perf_counter() - begin) / 200 * 1e6
    torch.cuda.synchronize()
    line |= {
        "ms": result.milliseconds,
        "min_ms": result.times.least,
        "torch_ms": result.baseline.median,
        "ratio_to_torch": result.ratio,
        "host_us": round(host, 2),
        "gb_s": round(result.gigabytes_per_second),
        "tflop_s": result.teraflops and round(result.teraflops, 2),
        "roofline": result.roofline and round(result.roofline.milliseconds / result.milliseconds, 3),
    }
    used = kernel.build().device.resources[0]
    line["registers"], line["spills"] = used.registers.value, used.spill_stores.value
    return line


def reference(case: Case, arguments: tuple[Any, ...]) -> Any:
    """In double precision where that fits, else as torch does it."""
    size = sum(array.numel() for array in arguments)
    wide = size < 1 << 29 and not case.name.startswith("flash")
    return case.reference(*(array.double() if wide else array for array in arguments))


def launch_overhead() -> dict[str, Any]:
    """Microseconds of the host for a call, by the library of the arrays; beside the driver's own launch."""
    import torch
    from numba import cuda

    case = next(case for case in cases() if case.name == "vector_add_4096")
    kernel, _ = compiled(case)
    found: dict[str, Any] = {"name": "launch overhead, us"}
    tensors = case.arguments(torch)
    sets = {"torch": tensors, "numba": tuple(cuda.as_cuda_array(tensor) for tensor in tensors)}
    sets["numba"] = tuple(cuda.to_device(tensor.cpu().numpy()) for tensor in tensors)
    try:
        import cupy

        sets["cupy"] = tuple(cupy.asarray(tensor) for tensor in tensors)
    except ImportError:
        pass
    calls = {name: (lambda arrays=arrays: kernel(*arrays)) for name, arrays in sets.items()}
    kernel(*tensors)
    calls_of = kernel._calls
    on, binding = calls_of._bound(tensors, {})
    plan, driver = calls_of._prepare(on, binding, 0).plan, calls_of.devices.driver
    values = [tensor.data_ptr() for tensor in tensors]
    block = plan.layout.filled(values, 0)
    (arguments,) = block.calls
    calls["parameter block and driver"] = lambda: plan.run(values, 0)
    calls["driver alone"] = lambda: driver.launch(*arguments)
    launch = plan.steps[0].launch
    bound = (driver._cuda.CUfunction(launch.function), *launch.configuration, driver.stream(0))
    calls["driver through its bindings"] = lambda: driver._cuda.cuLaunchKernel(*bound, arguments[2].value, 0)
    calls["torch.add"] = lambda: torch.add(tensors[0], tensors[1], out=tensors[2])
    for name, call in calls.items():
        best = []
        for _ in range(20):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(200):
                call()
            best.append((time.perf_counter() - begin) / 200 * 1e6)
        found[name] = round(sorted(best)[len(best) // 2], 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name holds this word")
    parser.add_argument("--repeat", type=int, help="launches to time; else as many as take 100 ms, 20 at least")
    parser.add_argument("--out", type=Path, help="also write the lines here")
    asked = parser.parse_args()
    import tilelang_nb

    begin = time.perf_counter()
    warm = tilelang_nb.compile_cell("@T.prim_func\n" + WARM_UP, target="cuda").kernels["k"]
    import numpy as np

    warm(np.zeros(64, np.float16))
    lines = [{"name": "first kernel of the process", "compile_s": round(time.perf_counter() - begin, 3)}]
    print(json.dumps(lines[0]), flush=True)
    for case in cases():
        if asked.only in case.name:
            lines.append(measured(case, asked.repeat))
            print(json.dumps(lines[-1]), flush=True)
    if asked.only in "launch overhead":
        lines.append(launch_overhead())
        print(json.dumps(lines[-1]), flush=True)
    if asked.out:
        asked.out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
