"""Calls of a kernel on devices: what is copied, what is launched with which parameters, and what is refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runtime.stand_in_device import FACTS, DeviceMemory, Launch, StandInDevices

import tilelang_nb
from tilelang_nb.device import DeviceProgram
from tilelang_nb.runtime.device_calls import DeviceCalls

CELL = """
n = T.dynamic("n")
m = T.dynamic("m")
step = T.dynamic("step")

@T.prim_func
def scaled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), s: T.float32):
    with T.Kernel(T.ceildiv(n, 64), threads=64) as b:
        for i in T.Parallel(64):
            B[b * 64 + i] = A[b * 64 + i] * s

@T.prim_func
def by_number(A: T.Tensor((64,), "int32"), blocks: T.int32):
    with T.Kernel(blocks, threads=64) as b:
        for i in T.Parallel(64):
            A[i] = b

@T.prim_func
def strided(A: T.StridedTensor((n, m), (step, 1), "float32")):
    with T.Kernel(n, threads=32) as b:
        for i in T.Parallel(32):
            if i < m:
                A[b, i] = A[b, i] + 1

@T.prim_func
def high(A: T.Tensor((n, m), "float32")):
    with T.Kernel(n, m, threads=32) as (b, c):
        A[b, c] = 1.0

@T.prim_func
def shared(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tile = T.alloc_shared((16, 1024), "float32")
        for i in T.Parallel(64):
            tile[0, i] = A[i]
        for i in T.Parallel(64):
            A[i] = tile[0, 63 - i]

@T.prim_func
def through_workspace(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    W = T.alloc_global((64,), "float32")
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            W[i] = A[i]
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = W[i]

@T.prim_func
def every_number(out: T.Tensor((1,), "float32"), a: T.bool, b: T.int8, c: T.uint64, d: T.float16, e: T.float64, f: T.bfloat16):
    with T.Kernel(1, threads=1):
        if a:
            out[0] = b + c + d + e + f
"""
POINTER = 8


@pytest.fixture(scope="module")
def programs() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(CELL, target="cuda", arch="sm_90a")
    assert c.ok, c.to_text()
    return c.kernels


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceProgram, "cubin", property(lambda self: b"machine code"))


def on(kernel: Any, devices: StandInDevices, work: Callable[[dict[str, Any], Launch], None] | None = None) -> Any:
    """The kernel on stand-in devices.  work: what a launch does, given its parameters by name."""
    fresh = kernel.compile(out_idx=kernel.outputs or None, options={"stand-in": id(devices)})
    build = fresh.build()
    for launch in build.device.launches:
        devices.driver.parameters[launch.name] = len(launch.parameters)
    if work is not None:
        devices.driver.work = lambda launch: work(named(build, launch), launch)
    fresh._calls = DeviceCalls(fresh, build, devices)
    return fresh


FORMATS = {
    "bool": "?",
    "int8": "b",
    "int32": "i",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "bfloat16": "H",
}


def named(build: Any, launch: Launch) -> dict[str, Any]:
    """Parameters of a launch by name: addresses and numbers."""
    known = next(one for one in build.device.launches if one.name == launch.name)
    found = {}
    for parameter, slot in zip(known.parameters, launch.slots):
        code = "Q" if parameter.kind == "pointer" else FORMATS[parameter.dtype]
        found[parameter.name] = struct.unpack_from("<" + code, slot)[0]
    return found


def view(pointer: int, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    import ctypes

    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * count).from_address(pointer), dtype).reshape(shape)


def scale(given: dict[str, Any], launch: Launch) -> None:
    n = given["n"]
    view(given["B"], (n,))[...] = view(given["A"], (n,)) * np.float32(given["s"])


def names_of(devices: StandInDevices) -> list[str]:
    return [entry[0] for entry in devices.driver.log]


def test_arrays_of_the_host_are_copied_in_and_only_written_ones_back(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    a, b = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    k(a, b, 0.5)
    assert np.array_equal(b, a * 0.5)
    assert names_of(devices).count("copy_to_device") == 2 and names_of(devices).count("copy_to_host") == 1
    assert devices.driver.launches[0].grid == (2, 1, 1) and devices.driver.launches[0].block == (64, 1, 1)


def test_device_arrays_are_used_where_they_are_and_nothing_is_waited_for(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    a, b = DeviceMemory(np.arange(64, dtype=np.float32)), DeviceMemory(np.zeros(64, np.float32))
    k(a, b, 2.0)
    assert np.array_equal(b.content, 2 * a.content)
    assert set(names_of(devices)) == {"load", "launch"}
    given = named(k.build(), devices.driver.launches[0])
    assert (given["A"], given["B"], given["n"]) == (a.pointer, b.pointer, 64)


def test_host_and_device_arrays_mix(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    a, b = np.arange(64, dtype=np.float32), DeviceMemory(np.zeros(64, np.float32))
    k(a, b, 2.0)
    assert np.array_equal(b.content, 2 * a) and "copy_to_host" not in names_of(devices)


def test_a_misaligned_device_array_is_worked_on_in_an_aligned_copy(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    a = DeviceMemory(np.arange(64, dtype=np.float32), offset=4)
    b = DeviceMemory(np.zeros(64, np.float32), offset=8)
    k(a, b, 2.0)
    assert np.array_equal(b.content, 2 * a.content) and names_of(devices).count("copy_within") == 3
    given = named(k.build(), devices.driver.launches[0])
    assert given["A"] % 16 == 0 and given["B"] % 16 == 0


def test_one_host_array_for_two_parameters_is_one_memory(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    a = np.arange(64, dtype=np.float32)
    k(a, a, 3.0)
    given = named(k.build(), devices.driver.launches[0])
    assert given["A"] == given["B"] and np.array_equal(a, 3 * np.arange(64, dtype=np.float32))


def test_overlapping_host_arrays_are_refused_where_one_is_written(programs: dict[str, Any]) -> None:
    k = on(programs["scaled"], StandInDevices(), scale)
    memory = np.zeros(80, np.float32)
    with pytest.raises(tilelang_nb.LaunchError, match="overlaps A") as caught:
        k(memory[:64], memory[16:], 1.0)
    assert caught.value.diagnostic.code == "TL301"


def test_a_view_of_the_host_is_written_in_place(programs: dict[str, Any]) -> None:
    def work(given: dict[str, Any], launch: Launch) -> None:
        rows = [view(given["A"] + 4 * given["step"] * row, (given["m"],)) for row in range(given["n"])]
        for row in rows:
            row += 1

    whole = np.zeros((4, 10), np.float32)
    on(programs["strided"], StandInDevices(), work)(whole[:, 2:8])
    assert whole[:, 2:8].all() and not whole[:, :2].any() and not whole[:, 8:].any()


def test_a_returned_tensor_is_of_the_host_where_the_arguments_are(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"].compile(out_idx=[1]), devices, scale)
    a = np.arange(64, dtype=np.float32)
    assert np.array_equal(k(a, 2.0), 2 * a)
    made = k(DeviceMemory(a), 4.0)
    assert isinstance(made, DeviceMemory) and np.array_equal(made.content, 4 * a)


def test_an_empty_grid_launches_nothing(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices, scale)
    k(np.zeros(0, np.float32), np.zeros(0, np.float32), 1.0)
    assert devices.driver.launches == []


def test_a_grid_that_depends_on_a_number_follows_it(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["by_number"], devices)
    a = DeviceMemory(np.zeros(64, np.int32))
    for blocks in (3, 5, 0, 3):
        k(a, blocks)
    assert [launch.grid[0] for launch in devices.driver.launches] == [3, 5, 3]


def test_grids_beyond_the_device_are_refused_with_the_axis(programs: dict[str, Any]) -> None:
    k = on(programs["high"], StandInDevices())
    with pytest.raises(tilelang_nb.LaunchError, match="70000 blocks along y") as caught:
        k(np.zeros((1, 70000), np.float32))
    assert caught.value.diagnostic.code == "TL208"
    k(np.zeros((70000, 1), np.float32))  # x takes more


def test_shared_memory_over_48_kib_is_asked_for_once(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["shared"], devices)
    for _ in range(3):
        k(DeviceMemory(np.zeros(64, np.float32)))
    asked = [entry for entry in devices.driver.log if entry[0] == "allow_shared"]
    assert len(asked) == 1 and asked[0][2] == devices.driver.launches[0].shared >= 65536


def test_shared_memory_beyond_the_device_is_refused(programs: dict[str, Any]) -> None:
    from dataclasses import replace

    small = StandInDevices(facts=replace(FACTS, shared_bytes=49152))
    with pytest.raises(tilelang_nb.LaunchError, match="shared memory") as caught:
        on(programs["shared"], small)(DeviceMemory(np.zeros(64, np.float32)))
    assert caught.value.diagnostic.code == "TL209"


@pytest.mark.parametrize(
    ("capability", "arch", "runs"),
    [
        ((9, 0), "sm_90a", True),
        ((9, 0), "sm_90", True),
        ((9, 0), "sm_80", False),
        ((8, 9), "sm_80", True),
        ((8, 0), "sm_89", False),
        ((10, 0), "sm_90a", False),
        ((12, 1), "sm_120", True),
        ((12, 1), "sm_120a", False),
    ],
)
def test_code_runs_on_its_own_generation_of_devices(capability: tuple[int, int], arch: str, runs: bool) -> None:
    from dataclasses import replace

    from tilelang_nb.runtime.device_launch import check_architecture
    from tilelang_nb.source.diagnostic import Refusal

    facts = replace(FACTS, capability=capability)
    if runs:
        check_architecture(arch, facts)
    else:
        with pytest.raises(Refusal, match=f"code for {arch} does not run here"):
            check_architecture(arch, facts)


def test_arrays_of_two_devices_are_refused(programs: dict[str, Any]) -> None:
    devices = StandInDevices(count=2)
    a, b = DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32))
    devices.driver.owners = {a.pointer: 0, b.pointer: 1}
    with pytest.raises(tilelang_nb.LaunchError, match="memory of device 0, where A is") as caught:
        on(programs["scaled"], devices)(a, b, 1.0)
    assert caught.value.diagnostic.code == "TL301"


def test_launches_are_counted_on_every_way(programs: dict[str, Any]) -> None:
    from tilelang_nb.notebook import findings

    k = on(programs["scaled"], StandInDevices())
    findings.begin()
    a, b = DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32))
    for number in range(4):
        k(a, b, 1.0 + number)
    k(np.zeros(64, np.float32), np.zeros(64, np.float32), 1.0)
    k(a, b, 1.0, stream=5)
    assert findings.counts() == {"scaled": 6}
    findings.begin()
    assert findings.counts() == {}
    with pytest.raises(tilelang_nb.LaunchError):
        k(a, 3, 1.0)
    k(a, b, 1.0)
    assert findings.counts() == {"scaled": 1}


def test_the_launch_is_made_on_the_device_of_the_arrays(programs: dict[str, Any]) -> None:
    devices = StandInDevices(count=2)
    a, b = DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32))
    devices.driver.owners = {a.pointer: 1, b.pointer: 1}
    made: list[int] = []
    devices.driver.work = lambda launch: made.append(devices.driver.context)
    k = on(programs["scaled"], devices)
    for _ in range(2):
        devices.driver.context = 100
        k(a, b, 1.0)
        assert devices.driver.context == 100  # that of the caller, which decides what torch and numba work on
    with pytest.raises(tilelang_nb.LaunchError):
        k(a, b, "1")
    assert made == [101, 101] and devices.driver.context == 100


def test_work_of_the_arrays_own_streams_comes_first_and_waits_after(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices)
    a, b = DeviceMemory(np.zeros(64, np.float32), stream=7), DeviceMemory(np.zeros(64, np.float32), stream=9)
    k(a, b, 1.0)
    orders = [entry for entry in devices.driver.log if entry[0] in ("order", "launch")]
    assert [entry[0] for entry in orders] == ["order", "launch", "order"]
    assert orders[0][1:] == (9, 7) and orders[1][2] == 7 and orders[2][1:] == (7, 9)


def test_a_given_stream_is_used(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices)
    a, b = DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32))

    class Stream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 77)

    k(a, b, 1.0, stream=Stream())
    k(a, b, 1.0, stream=5)
    assert [launch.stream for launch in devices.driver.launches] == [77, 5]
    with pytest.raises(tilelang_nb.LaunchError, match="`stream`: expected a stream"):
        k(a, b, 1.0, stream="mine")


def test_a_workspace_is_kept_for_the_calls_of_a_stream(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["through_workspace"], devices)
    a, b = DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32))
    for stream in (0, 0, 5):
        k(a, b, stream=stream)
    assert len(devices.driver.launches) == 6 and devices.allocated == [256, 256]
    build = k.build()
    found = [named(build, launch) for launch in devices.driver.launches]
    places = [next(iter({v for name, v in one.items() if name.startswith("W")})) for one in found]
    assert places[0] == places[1] == places[2] and places[4] != places[0]


def test_numbers_of_every_type_arrive_as_they_are(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["every_number"], devices)
    k(DeviceMemory(np.zeros(1, np.float32)), True, -3, 2**63 + 1, 0.5, 1e300, 3.0)
    given = named(k.build(), devices.driver.launches[0])
    assert given["a"] is True and given["b"] == -3 and given["c"] == 2**63 + 1
    assert given["d"] == 0.5 and given["e"] == 1e300 and given["f"] == 0x4040


def test_a_device_array_with_gaps_is_refused_with_the_way_out(programs: dict[str, Any]) -> None:
    k = on(programs["high"], StandInDevices())
    a = DeviceMemory(np.zeros((4, 8), np.float32))
    a.strides = (4, 16)
    with pytest.raises(tilelang_nb.LaunchError, match="row-major") as caught:
        k(a)
    assert caught.value.diagnostic.code == "TL301" and "StridedTensor" in caught.value.diagnostic.help


def test_a_read_only_device_array_that_is_written_is_refused(programs: dict[str, Any]) -> None:
    k = on(programs["scaled"], StandInDevices())
    a, b = DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32), read_only=True)
    with pytest.raises(tilelang_nb.LaunchError, match="writable"):
        k(a, b, 1.0)
    k(b, a, 1.0)


def test_memory_of_another_kind_of_device_is_refused(programs: dict[str, Any]) -> None:
    class Exporter:
        def __dlpack__(self, **_: Any) -> Any:
            raise AssertionError("nothing is to be exported")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (8, 0)

    k = on(programs["scaled"], StandInDevices())
    with pytest.raises(tilelang_nb.LaunchError, match="another kind of device") as caught:
        k(Exporter(), np.zeros(64, np.float32), 1.0)
    assert caught.value.diagnostic.code == "TL301"


def test_too_little_memory_is_said_with_a_way_out(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices)
    devices.driver.fails["allocate"] = "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(tilelang_nb.LaunchError, match="not enough memory") as caught:
        k(np.zeros(64, np.float32), np.zeros(64, np.float32), 1.0)
    assert caught.value.diagnostic.code == "TL302"


def test_a_lost_context_names_the_kernel_and_every_later_launch_says_restart(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k, other = on(programs["scaled"], devices), on(programs["by_number"], devices)
    for launch in other.build().device.launches:
        devices.driver.parameters[launch.name] = len(launch.parameters)
    k(DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32)), 1.0)
    devices.driver.fails["launch"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(tilelang_nb.LaunchError, match="illegal address") as caught:
        other(DeviceMemory(np.zeros(64, np.int32)), 1)
    said = caught.value.diagnostic
    assert said.code == "TL302" and "`scaled` of <cell> line 7" in said.message and "restart" in said.help
    devices.driver.fails.clear()
    for kernel, arguments in ((other, (np.zeros(64, np.int32), 1)), (k, [np.zeros(64, np.float32)] * 2 + [1.0])):
        with pytest.raises(tilelang_nb.LaunchError, match="the CUDA context was lost after illegal address") as caught:
            kernel(*arguments)
        assert "restart the notebook's kernel" in caught.value.diagnostic.help


def test_a_fault_after_a_wait_is_the_one_of_the_launch_since(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k, other = on(programs["scaled"], devices), on(programs["by_number"], devices)
    for launch in other.build().device.launches:
        devices.driver.parameters[launch.name] = len(launch.parameters)
    k(np.zeros(64, np.float32), np.zeros(64, np.float32), 1.0)  # is waited for
    other(DeviceMemory(np.zeros(64, np.int32)), 1)
    devices.driver.fails["synchronise"] = "CUDA_ERROR_LAUNCH_FAILED"
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        other(np.zeros(64, np.int32), 1)
    assert "in kernel `by_number`" in caught.value.diagnostic.message
    assert caught.value.diagnostic.span.line == 13


def test_a_fault_of_other_work_is_not_laid_to_a_kernel(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices)
    devices.driver.fails["launch"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(tilelang_nb.LaunchError, match="of no kernel of this package") as caught:
        k(DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32)), 1.0)
    assert caught.value.diagnostic.code == "TL302" and "restart" in caught.value.diagnostic.help


def test_a_thread_without_a_context_gets_one_and_the_launch_is_made(programs: dict[str, Any]) -> None:
    devices = StandInDevices()
    k = on(programs["scaled"], devices)
    devices.driver.fails["launch"] = "CUDA_ERROR_INVALID_CONTEXT"
    activate = devices.activate

    def activating(number: int) -> None:
        activate(number)
        if len(devices.activated) == 2:
            devices.driver.fails.clear()

    devices.activate = activating  # type: ignore[method-assign]
    k(DeviceMemory(np.zeros(64, np.float32)), DeviceMemory(np.zeros(64, np.float32)), 1.0)
    assert len(devices.driver.launches) == 1
