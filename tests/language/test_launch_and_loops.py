"""Launch specifications, thread indices, device loops."""

from __future__ import annotations

import itertools

import pytest
from tvm import tirx as tir

import tilelang_nb
import tilelang_nb.language as T
from tilelang_nb.language.loops import persistent_tile, persistent_waves
from tilelang_nb.language.values import Value, written


def text(value):
    return written(value) if isinstance(value, Value) else str(value)


@pytest.mark.parametrize(
    ("threads", "extents"),
    [(None, (128,)), (32, (32,)), ((64, 2), (64, 2)), ([8, 8, 4], (8, 8, 4)), (T.int32(256), (256,))],
)
def test_threads_are_a_number_or_up_to_three(threads, extents):
    assert T.Kernel(3, threads=threads).threads == extents


@pytest.mark.parametrize(
    ("threads", "text"),
    [
        (2048, "2048"),
        (0, "threads=0"),
        (-1, "-1"),
        ((64, 32), "2048"),
        ((2, 2, 128), "128"),
        ("128", "'128'"),
        (1.5, "1.5"),
        ((), "0"),
        (True, "True"),
    ],
)
def test_a_thread_count_outside_1_to_1024_is_refused(threads, text, refused):
    with refused("TL208", text):
        T.Kernel(1, threads=threads)


def test_the_number_of_threads_must_be_known(refused, device):
    with refused("TL208", "only when the kernel runs"):
        T.Kernel(1, threads=device("n", "int32"))


def test_grids(refused, device):
    n = device("n", "int32")
    assert T.Kernel(4, n, 2).grid[0::2] == (4, 2)
    assert T.Kernel(4, n, 2).grid[1] is n
    assert T.Kernel(0).grid == (0,)
    with refused("TL208", "4 dimensions"):
        T.Kernel(1, 2, 3, 4)
    assert T.Kernel(threads=32).grid == T.Kernel().grid == (1,)
    with refused("TL208", "2.5", "T.ceildiv"):
        T.Kernel(2.5)
    with refused("TL208", "-1"):
        T.Kernel(-1)
    with refused("TL208", "65536"):
        T.Kernel(1, 65536)
    with refused("TL208", "float32"):
        T.Kernel(device("x", "float32"))
    with refused("TL004", "`thread`", "`threads`"):
        T.Kernel(1, thread=32)


def test_clusters(refused, device):
    assert T.ClusterKernel(8, cluster_dims=(1, 1, 1), threads=64) == T.Kernel(8, threads=64)
    assert T.ClusterKernel(8, cluster_dims=2).cluster == (2, 1, 1)
    assert T.Kernel(8, 6, cluster_dims=(4, 2)).cluster == (4, 2, 1)
    assert T.Kernel(device("n", "int32"), cluster_dims=[8]).cluster == (8, 1, 1)
    with refused("TL208", "16 blocks", "at most 8"):
        T.ClusterKernel(16, cluster_dims=(4, 4))
    with refused("TL208", "9 blocks along x", "multiple of 2"):
        T.ClusterKernel(9, cluster_dims=2)
    with refused("TL208", "1 blocks along y"):
        T.ClusterKernel(8, cluster_dims=(1, 2))
    with refused("TL208", "4 dimensions"):
        T.ClusterKernel(8, cluster_dims=(1, 1, 1, 1))
    with refused("TL004", "cluster_dims"):
        T.ClusterKernel(8, cluster_dims=0)
    with refused("TL004", "cluster_dims=(2, 1, 1)"):
        T.ClusterKernel(8)
    with refused("TL302", "prelude"):
        T.Kernel(1, prelude="__device__ int f();")


def test_warp_groups(refused, device):
    assert T.ws(0).groups == (0,)
    assert T.ws(1, 2, 1).groups == (1, 2)
    assert T.WarpSpecialize(0) == T.ws(0)
    with refused("TL004", "needs the warp groups"):
        T.ws()
    with refused("TL004", "-1"):
        T.ws(-1)
    with refused("TL004", "only when the kernel runs"):
        T.ws(device("g", "int32"))


def test_indices_of_thread_and_block(kernel, refused):
    assert written(T.get_thread_binding()) == "tx"
    assert [*map(text, T.get_thread_bindings())] == ["tx", "ty", "0"]
    assert T.get_thread_extents() == (64, 2, 1)
    assert written(T.get_block_binding(0)) == "bx"
    assert [*map(text, T.get_block_bindings())] == ["bx"]
    assert (T.get_block_extent(0), T.get_block_extent(2)) == (10, 1)
    with refused("TL004", "3"):
        T.get_thread_binding(3)
    kernel.launch = None
    for use in (T.get_thread_binding, T.get_block_bindings, T.get_lane_idx, T.get_thread_extent):
        with refused("TL208", "with T.Kernel"):
            use()


def test_lanes_and_warps_come_from_the_linear_thread_index(kernel):
    assert written(T.get_lane_idx()) == "(tx + ty * 64) % 32"
    assert written(T.get_warp_idx()) == "(tx + ty * 64) // 32"
    assert written(T.get_warp_idx_sync()) == written(T.get_warp_idx())
    assert written(T.get_warp_group_idx()) == "(tx + ty * 64) // 128"
    assert written(T.shuffle_elect(64)) == "(tx + ty * 64) % 64 == 0"
    assert written(T.shuffle_elect(0)) == "(tx + ty * 64) % 128 == 0"


@pytest.mark.parametrize(
    ("loop", "kind", "dims"),
    [
        (lambda: T.serial(8), "serial", ((0, 8, 1),)),
        (lambda: T.serial(2, 16, 3), "serial", ((2, 16, 3),)),
        (lambda: T.Serial(0, 4), "serial", ((0, 4, 1),)),
        (lambda: T.serial(start=3, stop=5), "serial", ((3, 5, 1),)),
        (lambda: T.unroll(0, 16, 5), "unroll", ((0, 16, 5),)),
        (lambda: T.Unroll(4), "unroll", ((0, 4, 1),)),
        (lambda: T.vectorized(4, 8), "vectorized", ((4, 8, 1),)),
        (lambda: T.Vectorized(4), "vectorized", ((0, 4, 1),)),
        (lambda: T.Parallel(4, 5, 6), "parallel", ((0, 4, 1), (0, 5, 1), (0, 6, 1))),
        (lambda: T.Parallel((4, 5)), "parallel", ((0, 4, 1), (0, 5, 1))),
        (lambda: T.parallel(2, 6), "parallel", ((2, 6, 1),)),
        (lambda: T.Pipelined(5, num_stages=2), "pipelined", ((0, 5, 1),)),
        (lambda: T.Pipelined(1, 5, 3), "pipelined", ((1, 5, 1),)),
        (lambda: T.grid(2, 8), "grid", ((0, 2, 1), (0, 8, 1))),
        (lambda: T.thread_binding(32, thread="threadIdx.x"), "thread_binding", ((0, 32, 1),)),
        (lambda: T.thread_binding(0, 32, "threadIdx.y"), "thread_binding", ((0, 32, 1),)),
    ],
)
def test_loop_kinds_and_their_forms(loop, kind, dims):
    made = loop()
    assert (made.kind, made.dims) == (kind, dims)


def test_loop_options():
    assert T.Pipelined(4, num_stages=3).annotations == {"num_stages": 3}
    assert T.Pipelined(4, order=[-1, 0, -1], stage=[-1, 0, -1]).annotations["order"] == [-1, 0, -1]
    assert T.Pipelined(4, order=[1, 0], stage=[0, 1]).annotations == {"num_stages": 0, "order": [1, 0], "stage": [0, 1]}
    assert T.Parallel(4, coalesced_width=2, prefer_async=True).annotations == {
        "coalesced_width": 2,
        "prefer_async": True,
    }
    assert T.unroll(4, unroll_factor=2).annotations == {"unroll_factor": 2}
    assert T.unroll(4, explicit=True).annotations == {"explicit": True}
    assert T.serial(4, annotations={"x": 1, "y": object()}).annotations == {"x": 1}
    assert T.thread_binding(4, thread="blockIdx.z").annotations == {"thread": "blockIdx.z"}


@pytest.mark.parametrize(
    ("loop", "code", "text"),
    [
        (lambda x: T.serial(0, 8, 0), "TL141", "0"),
        (lambda x: T.serial(2.5), "TL004", "2.5"),
        (lambda x: T.serial(x), "TL004", "float32"),
        (lambda x: T.serial(None), "TL004", "None"),
        (lambda x: T.Parallel(), "TL004", "at least one"),
        (lambda x: T.grid(), "TL004", "at least one"),
        (lambda x: T.Parallel(4, coalesced_width=0), "TL004", "1 or more"),
        (lambda x: T.Parallel(4, loop_layout=3), "TL004", "T.Fragment"),
        (lambda x: T.Pipelined(4, num_stage=2), "TL004", "`num_stages`"),
        (lambda x: T.Pipelined(4, num_stages=-1), "TL004", "0 or more"),
        (lambda x: T.Pipelined(4, num_stages=x), "TL004", "only when the kernel runs"),
        (lambda x: T.Pipelined(4, order=[0], stage=[0, 1]), "TL004", "1 entries"),
        (lambda x: T.Pipelined(4, order=[0.5, 1]), "TL004", "write `order=[0, 1]`"),
        (lambda x: T.Pipelined(4, stage=[0, x]), "TL004", "write `stage=[0, 1]`"),
        (lambda x: T.Pipelined(4, order=[0, 0, 1], stage=[0, 0, 1]), "TL004", "two statements have place 0"),
        (lambda x: T.Pipelined(4, order=[0, 1], stage=[-2, 1]), "TL004", "counts from 0, -2 given"),
        (
            lambda x: T.Pipelined(4, order=[0, 1], stage=[0, 1], group=[[0]]),
            "TL004",
            "2 entries of `order` and 1 of `group`",
        ),
        (lambda x: T.unroll(4, explicit=True, unroll_factor=2), "TL004", "both"),
        (lambda x: T.thread_binding(32, thread="threadIdx.w"), "TL004", "threadIdx.x"),
        (lambda x: T.thread_binding(32), "TL004", "None"),
        (lambda x: T.vectorized(4, annotations=3), "TL004", "annotations"),
        (lambda x: T.serial([1, 2]), "TL004", "a list"),
    ],
)
def test_loop_mistakes(loop, code, text, refused, device):
    with refused(code, text):
        loop(device("x", "float32"))


def test_a_buffer_is_no_loop_bound(kernel, refused):
    with refused("TL111", "`a`"):
        T.serial(kernel.buffer("a", (8,)))


def test_a_variable_is_a_loop_bound(kernel):
    made = T.serial(T.alloc_var("int32", 4))
    assert isinstance(made.dims[0][1], Value)


def test_a_device_loop_outside_the_text_of_a_kernel_cannot_be_iterated(refused):
    with refused("TL111", "@T.macro"):
        list(T.serial(4))


@pytest.mark.parametrize(
    ("domain", "wave", "group"), [((3, 5), 4, 8), ((7, 10), 6, 3), ((4,), 3, 2), ((2, 3, 7), 5, 4)]
)
def test_persistent_gives_every_tile_to_exactly_one_block(domain, wave, group):
    seen = []
    for index in range(wave):
        loop = T.Persistent(list(domain), wave, index, group)
        for turn in range(persistent_waves(loop)):
            inside, place = persistent_tile(loop, turn)
            if inside:
                seen.append(place)
    inside_domain = [place for place in seen if place[0] < domain[0] or len(domain) == 1]
    assert sorted(inside_domain) == sorted(itertools.product(*[range(n) for n in domain]))
    assert len(inside_domain) == len(set(inside_domain))


def test_persistent_on_device_values_is_an_expression(device):
    loop = T.Persistent([device("m", "int32"), 4], 8, device("b", "int32"))
    assert isinstance(persistent_waves(loop), Value)
    inside, place = persistent_tile(loop, Value(tir.Var("w", "int32"), "int32"))
    assert (inside.dtype, len(place)) == ("bool", 2)


@pytest.mark.parametrize(
    ("m", "n", "workers", "panel", "column"),
    [(4, 6, 5, 1, True), (5, 7, 3, 2, True), (5, 7, 4, 3, False), (1, 1, 2, 4, True)],
)
def test_a_tile_scheduler_visits_every_tile_once(m, n, workers, panel, column):
    scheduler = T.PersistentTileScheduler(m, n, workers, swizzle_size=panel, column_major=column, stateful=False)
    tiles = [scheduler.coord(tile) for tile in range(m * n)]
    assert sorted(tiles) == sorted(itertools.product(range(m), range(n)))


def test_a_launch_of_a_function_that_is_no_kernel_says_to_make_it_one(refused):
    with refused("TL208", "no kernel"), T.Kernel(1):
        pass


def test_a_launch_without_blocks_is_one_and_one_name_may_stand_in_brackets():
    compiled = tilelang_nb.compile_cell(
        """
import numpy as np
@T.prim_func
def k(B: T.Tensor((5,), "int32"), n: T.int32):
    T.assume(n > 0)
    with T.Kernel(2, threads=32) as (bx,):
        B[bx] = bx + n
    with T.Kernel(threads=32):
        B[2] = 7
    with T.Kernel() as bx:
        B[3] = bx + 8
    with T.Kernel(1) as [only]:
        B[4] = T.cast(T.round(0.5, "ties-away-from-zero"), "int32") + only

B = np.zeros(5, "int32")
k(B, 3)
B.tolist()
""",
        target="sim",
    )
    assert compiled.ok, compiled.to_text()
    assert compiled.result == [3, 4, 7, 8, 1]


def test_a_linear_layout_is_one_of_any_tile(kernel, refused):
    from tilelang_nb.language.swizzled_layouts import make_linear_layout

    for shape in ((256,), (4, 8), (2, 3, 4)):
        layout = make_linear_layout(kernel.buffer("s", shape, "float16", "shared.dyn"))
        last = tuple(extent - 1 for extent in shape)
        assert [int(index) for index in layout.forward(*last)] == list(last)
    with refused("TL204"):
        make_linear_layout(kernel.buffer("x", (), "float16", "shared.dyn"))
