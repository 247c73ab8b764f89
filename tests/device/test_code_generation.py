"""NVRTC, the prelude, resources and the kept code."""

from __future__ import annotations

import pytest

import tilelang_nb
from tilelang_nb import device
from tilelang_nb.device import nvrtc
from tilelang_nb.device.prelude import definitions, prelude_for
from tilelang_nb.device.resources import occupancy, read_log
from tilelang_nb.device.tail import STAGE_NAMES
from tilelang_nb.source.diagnostic import Refusal

CELL = """
@T.prim_func
def k(A: T.Tensor((4096,), "float16"), B: T.Tensor((4096,), "float16")):
    with T.Kernel(4, threads=128) as bx:
        s = T.alloc_shared((1024,), "float16")
        T.copy(A[bx * 1024], s)
        for i in T.Parallel(1024):
            B[bx * 1024 + i] = s[1023 - i]
"""


# What differs between architectures is compiled for several.
DIFFERING = ("tl_atomic", "tl_nan", "tl_to_float8")
PRELUDE = [
    *((name, kind, "sm_80") for name, kind, *_ in definitions()),
    *(
        (name, kind, arch)
        for name, kind, *_ in definitions()
        for arch in ("sm_75", "sm_90a", "sm_100", "sm_120")
        if name.startswith(DIFFERING)
    ),
]


@pytest.mark.parametrize(("name", "kind", "arch"), PRELUDE)
def test_every_definition_of_the_prelude_compiles_by_itself(name: str, kind: str, arch: str) -> None:
    text = prelude_for(f"// {name} {kind}\n") + '\nextern "C" __global__ void k() {}\n'
    assert name in text and nvrtc.compile_cuda(text, arch).cubin


def test_the_prelude_holds_only_what_is_used(program_of) -> None:
    assert program_of(CELL.replace("float16", "float32")).kernel_line < 4
    assert "cuda_bf16" not in program_of(CELL).cuda_source


@pytest.mark.parametrize(("dtype", "header"), [("float16", "cuda_fp16"), ("bfloat16", "cuda_bf16")])
def test_types_that_are_only_moved_and_converted_need_no_header(program_of, dtype: str, header: str) -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((4096,), "{dtype}"), B: T.Tensor(({size},), "{dtype}")):
    with T.Kernel({blocks}, threads=128) as bx:
        for i in T.Parallel({block}):
            B[bx * {block} + i] = {value}
"""
    for block in (1024, 512, 256, 128):  # vectors of 8, 4, 2 and 1
        values = {"dtype": dtype, "size": 2048, "blocks": 2048 // block, "block": block}
        moved = program_of(text.format(**values, value=f"A[bx * {block} + i]"))
        assert header not in moved.cuda_source and moved.cubin
        converted = program_of(text.format(**values, value=f'T.cast(A[bx * {block} + i], "float32") * 3.0'))
        assert header not in converted.cuda_source and converted.cubin
        computed = program_of(text.format(**values, value=f"A[bx * {block} + i] * A[0]"))
        assert header in computed.cuda_source and computed.cubin


def test_an_architecture_that_nvrtc_does_not_know_is_refused_with_the_reason(program_of) -> None:
    program = program_of(CELL, "sm_70")
    assert "k_kernel(" in program.cuda_source
    for use in (lambda: program.cubin, lambda: program.ptx, lambda: program.sass, lambda: program.resources):
        with pytest.raises(device.DeviceError) as caught:
            use()
        found = caught.value.diagnostic
        assert found.code == "TL302" and "sm_70" in found.message and "sm_75" in found.message
        assert found.span is not None and found.span.line == 3


def test_without_nvrtc_the_extra_to_install_is_named(program_of, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise Refusal(nvrtc.say.TargetUnavailable(problem="no CUDA compiler here", remedy=nvrtc.INSTALL))

    monkeypatch.setattr(nvrtc, "_nvrtc", missing)
    monkeypatch.setattr(nvrtc.architectures, "__wrapped__", missing, raising=False)
    program = program_of(CELL)
    with pytest.raises(device.DeviceError, match="TL302") as caught:
        _ = program.cubin
    assert "pip install '.[cuda]'" in caught.value.diagnostic.help


def test_resources_have_their_origin(program_of) -> None:
    (found,) = program_of(CELL).resources
    assert (found.registers.origin, found.threads.origin, found.occupancy.origin) == ("ptxas", "compiler", "computed")
    assert (found.threads.value, found.shared_bytes.value, found.spill_loads.value) == (128, 2048, 0)
    assert 0 < found.registers.value < 64 and found.occupancy.value == 1.0 and found.blocks.value == 16


def test_of_several_launches_the_figures_of_the_largest_are_shown(program_of) -> None:
    program = program_of("""
@T.prim_func
def k(A: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((256,), "float32")
        T.copy(A, s)
        for i in T.Parallel(256):
            A[i] = s[255 - i]
    with T.Kernel(1, threads=256):
        for i in T.Parallel(256):
            A[i] = A[i] + 1
""")
    assert [one.threads.value for one in program.resources] == [64, 256]
    assert program.resources.threads.value == 256 and program.resources.shared_bytes.value == 1024


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "share", "limit"),
    [  # NVIDIA's occupancy calculator
        ("sm_80", 256, 32, 0, 8, 1.0, "warps"),
        ("sm_80", 256, 64, 0, 4, 0.5, "registers"),
        ("sm_90a", 128, 168, 0, 3, 0.1875, "registers"),
        ("sm_90a", 128, 32, 100 * 1024, 2, 0.125, "shared memory"),
        ("sm_86", 1024, 32, 0, 1, 2 / 3, "warps"),
        ("sm_75", 1024, 40, 0, 1, 1.0, "warps"),
        ("sm_90", 32, 16, 0, 32, 0.5, "blocks"),
    ],
)
def test_occupancy(arch: str, threads: int, registers: int, shared: int, blocks: int, share: float, limit: str) -> None:
    assert occupancy(arch, threads, registers, shared) == (blocks, pytest.approx(share), limit)


def test_the_log_of_ptxas_is_read_per_kernel() -> None:
    log = """ptxas info    : Compiling entry function 'a_kernel' for 'sm_80'
ptxas info    : Function properties for a_kernel
ptxas         .     40 bytes stack frame, 24 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, 128 bytes smem, 380 bytes cmem[0]
ptxas info    : Compiling entry function 'b_kernel' for 'sm_80'
ptxas info    : Function properties for b_kernel
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
"""
    assert read_log(log) == {
        "a_kernel": {"registers": 255, "shared": 128, "stack": 40, "spill_stores": 24, "spill_loads": 16},
        "b_kernel": {"registers": 12, "shared": 0, "stack": 0, "spill_stores": 0, "spill_loads": 0},
    }


class Store(dict):
    def put(self, key: str, parts: dict[str, bytes]) -> None:
        self[key] = dict(parts)


def test_compiled_code_is_kept_and_found_again(program_of, monkeypatch: pytest.MonkeyPatch) -> None:
    store, first = Store(), program_of(CELL)
    first.store = store
    assert first.cubin and len(store) == 1
    second = program_of(CELL)
    second.store = store
    monkeypatch.setattr("tilelang_nb.device.program.compile_cuda", None)
    assert (second.cubin, second.ptx, second.log) == (first.cubin, first.ptx, first.log)
    for other in (program_of(CELL, "sm_90a"), program_of(CELL, options={"tl.enable_fast_math": True})):
        other.store = store
        with pytest.raises(TypeError):  # not found: it would be compiled
            _ = other.cubin


def test_fast_math_is_an_option(program_of) -> None:
    text = CELL.replace("s[1023 - i]", "T.exp(T.cast(s[1023 - i], 'float32'))")
    assert "expf(" in program_of(text).kernel_source and "__expf(" not in program_of(text).kernel_source
    fast = program_of(text, options={"tl.enable_fast_math": True})
    assert len(fast.sass) < len(program_of(text).sass)


def test_the_passes_are_stages_in_order(program_of) -> None:
    program = program_of(CELL)
    assert tuple(one.name for one in program.passes) == STAGE_NAMES
    kernel = tilelang_nb.compile_cell(CELL, target="sim").kernels["k"]
    names = [stage.name for stage in kernel.stages]
    assert names[names.index("thread") + 1 :] == [*STAGE_NAMES, "cuda", "ptx", "sass"]


def test_the_compiler_runs_only_when_its_texts_are_asked_for() -> None:
    kernel = tilelang_nb.compile_cell(CELL, target="sim", arch="sm_80").kernels["k"]
    by_name = {stage.name: stage for stage in kernel.stages}
    kernel.to_text(), kernel.to_html(), kernel.cuda_source
    assert by_name["cuda"].ready and not by_name["ptx"].ready and not by_name["sass"].ready
    assert "on demand" in kernel.to_text()
    assert "ld.global" in by_name["ptx"].text and by_name["ptx"].ready and not by_name["sass"].ready
    assert "LDG" in by_name["sass"].text and "on demand" not in kernel.to_text()


def test_a_fault_of_the_tail_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tilelang_nb.compile_cell(CELL, target="sim").kernels["k"]

    def broken(*_: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr("tilelang_nb.device.program.run_tail", broken)
    program = device.generate(kernel.build().lowered, arch="sm_80")
    (found,) = program.diagnostics
    assert found.code == "TL900" and "a fault" in found.help and program.launches == ()
    with pytest.raises(device.DeviceError, match="TL900"):
        _ = program.cubin
