"""Parts of a block (`T.ws`) that follow each other: in any order, repeated, overlapping, or of the whole block."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import tilelang_nb

ARCHITECTURES = ["sm_80", "sm_90a"]
HEAD = """
import tilelang.language as T

@T.prim_func
def k(A: T.Tensor(({size},), "int32"), C: T.Tensor(({size},), "int32")):
    with T.Kernel(1, threads={threads}):
        t = T.get_thread_binding()
"""
# Parts of 512 threads: each multiplies by ten and adds its place in the text.
SEQUENCES = [
    *permutations([(0,), (1,), (2,), (3,)]),
    *permutations([(0, 1), (2,), (3,)]),
    *permutations([(0,), (1, 2), (3,)]),
    [(0,), (0,)],
    [(1,), (1,), (0,), (1,)],
    [(2,), (0,), (2,), (0,), (3,), (2,)],
    [(0, 1), (1, 2)],
    [(1, 2), (0, 1), (2, 3), (3,), (0,)],
    [(0, 1), (3,), (1, 2), (2, 3)],
    [(0,), (1,), (0, 1), (1,), (0,), (2, 3)],
    [(0,), (0, 1, 2, 3), (1,)],
    [(0, 1, 2, 3), (1,), (2,), (0, 1, 2, 3), (3,)],
    [(1, 2, 3), (0, 1, 2, 3), (0, 1, 2)],
]
# What a part of the text runs, and what a thread of it makes of its value.
BODIES = {
    "a statement": ["C[t] = C[t] * 10 + {place}"],
    "one if": ["if t % 3 != 1:", "    C[t] = C[t] * 10 + {place}"],
    "an if and an else": ["if t % 3 != 1:", "    C[t] = C[t] * 10 + {place}", "else:", "    C[t] = C[t] + 1"],
}


def compiled(text: str, architecture: str):
    found = tilelang_nb.compile_cell(text, target=f"sim -arch={architecture}")
    assert found.ok, found.to_text()
    (kernel,) = found.kernels.values()
    return kernel.compile(target=f"sim -arch={architecture}")


def text_of(sequence, body: str) -> str:
    lines = [HEAD.format(size=512, threads=512)]
    for place, groups in enumerate(sequence, 1):
        lines.append(f"        with T.ws({', '.join(map(str, groups))}):\n")
        lines += [f"            {line.format(place=place)}\n" for line in BODIES[body]]
    return "".join(lines)


def expected(sequence, body: str) -> np.ndarray:
    result = np.zeros(512, np.int64)
    for place, groups in enumerate(sequence, 1):
        for thread in range(512):
            if thread // 128 in groups:
                if body == "a statement" or thread % 3 != 1:
                    result[thread] = result[thread] * 10 + place
                elif body == "an if and an else":
                    result[thread] += 1
    return result.astype(np.int32)


def check(sequence, body: str, architecture: str) -> None:
    kernel = compiled(text_of(sequence, body), architecture)
    result = np.zeros(512, np.int32)
    kernel(np.zeros(512, np.int32), result)
    np.testing.assert_array_equal(result, expected(sequence, body), err_msg=f"{sequence}: {body}")
    assert not list(kernel.findings)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("sequence", SEQUENCES, ids=str)
def test_each_thread_runs_its_parts_in_their_order(sequence, architecture):
    check(sequence, "a statement", architecture)


@pytest.mark.parametrize("body", ["one if", "an if and an else"])
@pytest.mark.parametrize("sequence", [*SEQUENCES[24:30:3], *SEQUENCES[36:]], ids=str)
def test_a_body_that_is_one_if_keeps_its_condition(sequence, body):
    check(sequence, body, "sm_90a")


SHARED = """        s = T.alloc_shared(({threads},), "int32")
        with T.ws({groups}):
            if A[t] > 0:
                s[t] = A[t]
                C[t] = s[{first} + {count} - 1 - (t - {first})]
"""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("groups", [(0, 1, 2), (1,), (2,), (0, 1)], ids=str)
def test_a_barrier_in_one_if_of_a_part_is_met_by_all_threads_of_the_part(groups, architecture):
    first, count = groups[0] * 128, len(groups) * 128
    text = HEAD.format(size=384, threads=384)
    text += SHARED.format(threads=384, groups=", ".join(map(str, groups)), first=first, count=count)
    kernel = compiled(text, architecture)
    values, result = np.arange(1, 385, dtype=np.int32), np.zeros(384, np.int32)
    kernel(values, result)
    wanted = np.zeros(384, np.int32)
    wanted[first : first + count] = values[first : first + count][::-1]
    np.testing.assert_array_equal(result, wanted)
    assert not list(kernel.findings)
    with_holes = values.copy()  # some threads skip the condition, in pairs that mirror
    with_holes[(np.arange(384) % 128 < 5) | (np.arange(384) % 128 > 122)] = 0
    again = np.zeros(384, np.int32)
    kernel(with_holes, again)
    wanted = np.zeros(384, np.int32)
    wanted[first : first + count] = with_holes[first : first + count][::-1]
    np.testing.assert_array_equal(again, wanted)
    assert not list(kernel.findings)


# Roles that wait for each other through mbarriers, over more turns than the ring has slots.
ROLES = {
    "producer": """        with T.ws({group}):
            for i in range(4):
                T.barrier_wait(empty, (i + 1) % 2)
                s[t - {group} * 128] = A[i * 128 + t - {group} * 128]
                T.barrier_arrive(full)
""",
    "consumer": """        with T.ws({group}):
            for i in range(4):
                T.barrier_wait(full, i % 2)
                C[i * 128 + t - {group} * 128] = s[127 - (t - {group} * 128)] + {added}
                T.barrier_arrive(empty)
""",
    "before": """        with T.ws({group}):
            C[511 - t % 128] = 7
""",
}
RING = """        s = T.alloc_shared((128,), "int32")
        full = T.alloc_barrier(128)
        empty = T.alloc_barrier(128)
"""


def roles(*parts: tuple[str, str]) -> str:
    text = HEAD.format(size=512, threads=384) + RING
    for name, group in parts:
        text += ROLES[name].format(group=group, added=3)
    return text


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("groups", list(permutations(range(3), 2)), ids=str)
@pytest.mark.parametrize("order", ["producer first", "producer last", "the consumer did something before"])
def test_roles_run_side_by_side_in_any_order(order, groups, architecture):
    one, two = groups
    producer, consumer = ("producer", str(one)), ("consumer", str(two))
    parts = {
        "producer first": [producer, consumer],
        "producer last": [consumer, producer],
        "the consumer did something before": [("before", str(two)), consumer, producer],
    }[order]
    kernel = compiled(roles(*parts), architecture)
    values, result = np.arange(512, dtype=np.int32), np.zeros(512, np.int32)
    kernel(values, result)
    np.testing.assert_array_equal(result, values.reshape(4, 128)[:, ::-1].ravel() + 3)
    assert not list(kernel.findings)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_parts_of_both_roles_stand_before_and_after_them(architecture):
    both = "        with T.ws(0, 1):\n            C[512 + t] = C[512 + t] * 10 + {}\n"
    text = HEAD.format(size=768, threads=384) + RING + both.format(1)
    text += ROLES["consumer"].format(group=0, added=0) + ROLES["producer"].format(group=1) + both.format(2)
    kernel = compiled(text, architecture)
    values, result = np.arange(768, dtype=np.int32), np.zeros(768, np.int32)
    kernel(values, result)
    np.testing.assert_array_equal(result[:512], values[:512].reshape(4, 128)[:, ::-1].ravel())
    np.testing.assert_array_equal(result[512:], np.full(256, 12))
    assert not list(kernel.findings)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("sequence", [SEQUENCES[9], SEQUENCES[38], SEQUENCES[42], SEQUENCES[-1]], ids=str)
def test_the_text_for_the_device_compiles(sequence, architecture):
    found = tilelang_nb.compile_cell(text_of(sequence, "one if"), target=f"cuda -arch={architecture}")
    assert found.ok, found.to_text()
    (kernel,) = found.kernels.values()
    assert kernel.compile(target=f"cuda -arch={architecture}").build().device.cubin
