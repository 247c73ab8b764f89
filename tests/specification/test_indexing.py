"""Indices, slices, regions, and what happens over the edge of a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from specification.cells import arrays, cell, compiled, computes, launched, like_python, refuses, refuses_cell, said
from specification.cells import kernel as kernel_of

import tilelang_nb
from tilelang_nb.runtime.kernel import SimulatorFindings

MATRICES = (
    'M: T.Tensor((4, 6), "float32"), N: T.Tensor((2, 3, 4), "int32"), out: T.Tensor((4, 6), "float32"), n: T.int32'
)


def matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.arange(24, dtype=np.float32).reshape(4, 6),
        np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        np.full((4, 6), -1, np.float32),
    )


def run(body: str, threads: int = 32) -> np.ndarray:
    """`out` after a launch with the matrices M and N and n = 2."""
    k = compiled(cell(body, parameters=MATRICES, threads=threads)).kernels["k"]
    M, N, out = matrices()
    k(M, N, out, 2)
    assert k.findings == ()
    return out


def refuses_in_matrices(body: str, *mistakes: tuple[str, str, str]) -> list[str]:
    return said(refuses_cell(cell(body, parameters=MATRICES), *mistakes))


def test_elements_are_read_and_stored_with_several_indices() -> None:
    """P28, 5.1: `A[i]`, `A[i, j, k]`, indices of every kind."""
    M, N, _ = matrices()
    out = run("i = n - 1\nout[1, 2] = N[1, n, i + 2]\nout[n, 0] = M[i, n * 2]\nout[0, 0] = M[N[0, 0, 3], 0]", threads=1)
    assert [out[1, 2], out[2, 0], out[0, 0]] == [N[1, 2, 3], M[1, 4], M[3, 0]]
    like_python("out[n] = a[m - 1]\nout[a[1]] = a[a[2]]")


def test_a_wrong_number_of_indices_names_buffer_rank_shape_and_what_was_given() -> None:
    """5.2: In loads and stores."""
    texts = refuses_in_matrices(
        "out[0, 0] = M[1]  #!\nout[0, 1] = N[0, 1, 2, 3]  #!\nout[2] = 1.0  #!\nM[0, 0] += N[n, n]  #!",
        ("TL201", "M[1]", "`M[1, j]`"),
        ("TL201", "N[0, 1, 2, 3]", "`N[i, j, k]`"),
        ("TL201", "out[2]", "`out[2, j]`"),
        ("TL201", "N[n, n]", "`N[n, n, k]`"),
    )
    for text, words in zip(texts, (["`M`", "2", "(4, 6)", "1"], ["`N`", "3", "(2, 3, 4)", "4"])):
        assert all(word in text for word in words), text


def test_constant_negative_indices_count_from_the_end() -> None:
    """P30, 5.3: In every dimension, in loads and stores, computed ones too."""
    M, N, _ = matrices()
    out = run("out[-1, -2] = M[-4, -1]\nout[0, 1 - 2] = N[-1, -3, -4]", threads=1)
    assert [out[3, 4], out[0, 5]] == [M[0, 5], N[1, 0, 0]]
    like_python("out[-1] = a[-8]\nout[-2] += a[-1]\na[-3] -= 1")


def test_a_constant_index_outside_the_extent_is_refused() -> None:
    """5.4: Above and below, in loads, stores and regions; the extent is named."""
    texts = refuses_in_matrices(
        "out[4, 0] = 1.0  #!\nout[0, 0] = M[0, -7]  #!\nout[0, 1] = N[2, 0, 0]  #!\nout[n, 6] += 1.0  #!",
        ("TL202", "out[4, 0]", "0..3"),
        ("TL202", "M[0, -7]", "0..5"),
        ("TL202", "N[2, 0, 0]", "0..1"),
        ("TL202", "out[n, 6]", "0..5"),
    )
    assert "`M`" in texts[1]


def test_a_runtime_index_is_not_wrapped() -> None:
    """5.5: A negative one is outside the buffer: found at the launch, and nothing is stored at the end."""
    k = kernel_of("out[n - 4] = 5\nout[0] = 1")
    with pytest.warns(SimulatorFindings, match=r"TL402.*out\[-1\]"):
        held = launched_anyway(k)
    assert held["out"].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_slices_make_regions_with_the_bounds_of_python() -> None:
    """P29, 5.6: Missing and negative bounds."""
    M, _, _ = matrices()
    out = run("T.copy(M[-2:, :], out[:2, :])\nT.copy(M[1, :-2], out[2, 0:4])\nT.copy(M[:2, -1:], out[2:, 5:])")
    wanted = matrices()[2]
    wanted[:2, :] = M[-2:, :]
    wanted[2, 0:4] = M[1, :-2]
    wanted[2:, 5:] = M[:2, -1:]
    assert np.array_equal(out, wanted)


def test_a_region_with_a_negative_start_has_that_extent() -> None:
    """5.6: `B[-32:]` has the extent 32; a region knows its shape."""
    text = "B: T.Tensor((100,), 'float32'), C: T.Tensor((32,), 'float32')"
    k = compiled(cell("assert B[-32:].shape == (32,)\nT.copy(B[-32:], C)", parameters=text, threads=32)).kernels["k"]
    B, C = np.arange(100, dtype=np.float32), np.zeros(32, np.float32)
    k(B, C)
    assert np.array_equal(C, B[-32:])


def test_regions_may_start_at_runtime_values() -> None:
    """5.6: Their extents are constants."""
    M, _, _ = matrices()
    out = run("T.copy(M[n : n + 2, 1:4], out[0:2, 0:3])")
    assert np.array_equal(out[0:2, 0:3], M[2:4, 1:4])


@pytest.mark.parametrize(
    "bounds",
    [
        "start = bx * 64\n        end = (bx + 1) * 64",
        "start = bx * 64\n        end = start + 64",
        "row = starts[bx]\n        start = row\n        last = row + 63\n        end = last + 1",
    ],
)
def test_a_region_between_names_has_the_extent_of_what_they_hold(bounds: str) -> None:
    """P29, 5.6: Also where a name holds what was read from memory."""
    made = tilelang_nb.compile_cell(
        f"""
@T.prim_func
def k(A: T.Tensor((256, 8), "float32"), B: T.Tensor((256, 8), "float32"), starts: T.Tensor((4,), "int32")):
    with T.Kernel(4, threads=64) as bx:
        tile = T.alloc_shared((64, 8), "float32")
        {bounds}
        T.copy(A[start:end, :], tile)
        T.copy(tile, B[start:end, 0:8])
""",
        target="sim",
    )
    assert made.ok, made.to_text()
    a, b = np.arange(2048, dtype="float32").reshape(256, 8), np.zeros((256, 8), "float32")
    made.kernels["k"](a, b, np.array([128, 0, 192, 64], "int32"))
    assert np.array_equal(a, b)


def test_a_region_between_names_of_another_extent_is_refused_with_it() -> None:
    """5.6, 5.7: Reversed ones too."""
    made = tilelang_nb.compile_cell("""
@T.prim_func
def k(A: T.Tensor((256,), "float32"), n: T.int32):
    with T.Kernel(4, threads=64) as bx:
        tile = T.alloc_shared((64,), "float32")
        start = bx * 64
        end = (bx + 2) * 64
        T.copy(A[start:end], tile)
        T.copy(A[end:start], tile)
        T.copy(A[start:end + n], tile)
""")
    assert [(one.code, one.span.line) for one in made.diagnostics if one.span] == [
        ("TL204", 8),
        ("TL202", 9),
        ("TL204", 10),
    ]
    assert "shape (128,)" in made.to_text()


@pytest.mark.parametrize("region", ["M[2:5, :]", "M[0:2, 3:7]", "M[-5:, :]", "M[:, 6:8]"])
def test_a_constant_region_outside_the_buffer_is_refused_and_not_clamped(region: str) -> None:
    """5.7: Python would cut it."""
    refuses_in_matrices(f"T.fill({region}, 0)  #!", ("TL202", region, "inside"))


@pytest.mark.parametrize("region", ["M[2:2, :]", "M[3:1, :]", "M[:, 6:]"])
def test_an_empty_or_reversed_constant_slice_is_refused(region: str) -> None:
    """9.12: TL202."""
    refuses_in_matrices(f"T.fill({region}, 0)  #!", ("TL202", region, "inside"))


@pytest.mark.parametrize("region", ["M[::2, :]", "M[:, 1:6:2]", "M[::-1, 0]", "M[0:4:n, 0]"])
def test_steps_other_than_one_are_refused(region: str) -> None:
    """5.8: TL203; a step of 1 is fine."""
    refuses_in_matrices(f"r = {region}  #!\ns = M[0:4:1, 0]", ("TL203", region, "loop"))


def test_an_origin_takes_its_extent_from_the_other_side() -> None:
    """5.9: In both directions of a copy."""
    M, _, _ = matrices()
    out = run("s = T.alloc_shared((2, 3), 'float32')\nT.copy(M[1, n], s)\nT.copy(s, out[n, 3])")
    wanted = matrices()[2]
    wanted[2:4, 3:6] = M[1:3, 2:5]
    assert np.array_equal(out, wanted)


def over_the_edge(safe: str = "") -> tuple[np.ndarray, np.ndarray]:
    """A tile of 32 elements loaded from 8 and stored to 8 and to 32: both destinations."""
    body = f"{safe}s = T.alloc_shared((32,), 'float32')\nT.copy(f[0], s)\nT.copy(s, g[0])\nT.copy(s, res[0])"
    parameters = 'f: T.Tensor((8,), "float32"), res: T.Tensor((8,), "float32"), g: T.Tensor((32,), "float32")'
    k = compiled(cell(body, parameters=parameters, threads=32)).kernels["k"]
    f, res, g = np.arange(8, dtype=np.float32) + 1, np.zeros(8, np.float32), np.full(32, -1, np.float32)
    k(f, res, g)
    assert k.findings == ()
    return res, g


def test_loads_over_the_edge_give_zero_and_stores_are_skipped() -> None:
    """5.10, 5.11: Of whole-tile accesses to global buffers."""
    res, g = over_the_edge()
    assert res.tolist() == [1, 2, 3, 4, 5, 6, 7, 8] and g.tolist() == [*res.tolist(), *[0] * 24]


def test_loads_over_the_edge_give_the_annotated_safe_value() -> None:
    """5.10: `T.annotate_safe_value`."""
    res, g = over_the_edge("T.annotate_safe_value({f: -2.5})\n")
    assert g.tolist() == [*res.tolist(), *[-2.5] * 24]


def test_the_guard_is_dropped_where_it_is_not_needed() -> None:
    """5.12: A grid that fits its buffer has no condition in the program of a thread, one that does not has one."""

    def script(extent: int) -> str:
        body = "for i in T.Parallel(32):\n    g[bx * 32 + i] = 1.0"
        text = cell(body, parameters=f'g: T.Tensor(({extent},), "float32")', threads=32)
        text = text.replace("T.Kernel(1, threads=32):", "T.Kernel(4, threads=32) as bx:")
        return next(stage.text for stage in compiled(text).kernels["k"].stages if stage.name == "thread")

    assert "if " not in script(128) and "if " in script(127)


def test_global_accesses_with_affine_indices_are_guarded() -> None:
    """9.9: Indices of loop, block and thread variables that cannot be proven inside."""
    body = "for i in T.Parallel(8):\n    out[i + n] = a[i + n] + 1\nfor j in range(12):\n    res[j] = f[j] + 1"
    held = launched(kernel_of(body, threads=8), n=3)
    assert held["out"].tolist() == [0, 0, 0, 6, 4, 0, 5, 8] and held["res"][7] == 10


def test_an_index_read_from_data_is_not_guarded_and_is_found() -> None:
    """9.10: The simulated device says TL402 at its line."""
    k = kernel_of("out[0] = a[a[3] + a[7]]")
    with pytest.warns(SimulatorFindings, match="TL402"):
        launched_anyway(k)
    assert [(d.code, d.span.line) for d in k.findings] == [("TL402", 4)]


def test_copies_between_whole_buffers_of_other_shapes_are_refused() -> None:
    """9.13: TL204 with both shapes, whatever their scopes."""
    made = refuses(
        "s = T.alloc_shared((4,), 'float32')\nr = T.alloc_fragment((4, 2), 'float32')\nT.copy(f, s)  #!\nT.copy(s, res)  #!\nT.copy(r, s)  #!",
        *(("TL204", call, "shapes equal") for call in ("T.copy(f, s)", "T.copy(s, res)", "T.copy(r, s)")),
    )
    assert "(8,)" in said(made)[0] and "(4,)" in said(made)[0]


def test_many_threads_storing_one_value_are_no_race_and_different_values_are() -> None:
    """9.11: TL401 where the values differ and nothing orders them."""
    computes("t = T.get_thread_binding()\nout[0] = n", threads=8, out=[3])
    k = kernel_of("t = T.get_thread_binding()\nout[0] = t", threads=8)
    with pytest.warns(SimulatorFindings, match="TL401"):
        launched_anyway(k)
    assert [(d.code, d.span.line) for d in k.findings] == [("TL401", 5)]


def launched_anyway(k: Any, n: int = 3, m: int = 5) -> dict[str, np.ndarray]:
    held = arrays()
    k(*held.values(), n, m)
    return held
