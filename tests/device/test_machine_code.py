"""What the machine code says of its kernels is what ptxas reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilelang_nb.device import nvrtc
from tilelang_nb.device.machine_code import read_machine_code
from tilelang_nb.device.resources import read_log

TEXTS = {
    "registers alone": """
extern "C" __global__ void add(float* a, int n) { if (threadIdx.x < n) a[threadIdx.x] += 1.0f; }
""",
    "two kernels, shared memory and a stack": """
extern "C" __global__ void reversed(float* a) {
  __shared__ float s[100];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[99 - threadIdx.x];
}
extern "C" __global__ void indexed(float* a, int* n) {
  float x[40];
  for (int i = 0; i < 40; i++) x[i] = a[i];
  for (int i = 0; i < n[1]; i++) x[n[i]] *= 2.0f;
  for (int i = 0; i < 40; i++) a[i] = x[i];
}
""",
    "spills": """
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* a, int n) {
  float x[96];
  #pragma unroll
  for (int i = 0; i < 96; i++) x[i] = a[i * 32 + threadIdx.x];
  for (int k = 0; k < n; k++) {
    #pragma unroll
    for (int i = 0; i < 96; i++) x[i] = x[i] * x[(i + 1) % 96] + a[k];
  }
  #pragma unroll
  for (int i = 0; i < 96; i++) a[i * 32 + threadIdx.x] = x[i];
}
""",
}


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("text", TEXTS)
def test_it_agrees_with_the_report(text: str, arch: str) -> None:
    compiled = nvrtc.compile_cuda(TEXTS[text], arch)
    said, found = read_log(compiled.log), read_machine_code(compiled.cubin, arch)
    assert said and said.keys() == found.keys()
    for name, figures in said.items():
        assert {key: found[name][key] for key in ("registers", "shared", "stack")} == {
            key: figures[key] for key in ("registers", "shared", "stack")
        }
        if name == "indexed":  # an array of the program in local memory is no spill, but looks like one
            assert found[name]["spill_stores"] >= figures["spill_stores"]
        else:
            assert found[name] == figures
    assert text != "spills" or said["spilling"]["spill_loads"] > 0


def test_without_a_report_the_resources_come_from_the_machine_code(program_of) -> None:
    cell = """
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
"""
    reported, silent = program_of(cell), program_of(cell)
    silent.compiled = replace(silent.compiled, log="")
    for said, found in zip(reported.resources, silent.resources):
        assert found.registers.origin == "machine code" and said.registers.origin == "ptxas"
        assert [(name, figure.value) for name, figure in found] == [(name, figure.value) for name, figure in said]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02", b"\x7fELF\x02" + bytes(200), b"text" * 50])
def test_what_is_no_machine_code_says_nothing(content: bytes) -> None:
    assert read_machine_code(content, "sm_90a") == {}
