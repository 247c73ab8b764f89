"""Every kernel of the acceptance cases is CUDA C that NVRTC and ptxas take, for three generations of devices."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilelang_nb
from tilelang_nb import device

CASES = sorted((Path(__file__).parents[1] / "cases").glob("c*.py"))
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
# Texts that were compiled before in this process: many cases share one.
compiled: set[tuple[str, str]] = set()


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 147


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_kernels_of_a_case_compile(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arch in ARCHITECTURES:
        compilation = tilelang_nb.compile_cell(path.read_text(encoding="utf-8"), target="sim", arch=arch)
        for kernel in compilation.kernels.values():
            build = kernel.build()
            if build is None or not build.ok:
                continue  # the case is about a mistake
            program = device.generate(build.lowered, arch=arch, options=build.options)
            assert not program.diagnostics, program.diagnostics
            if (arch, program.cuda_source) not in compiled:
                assert len(program.cubin) > 500, program.log
                assert "warning" not in program.log, program.log
                compiled.add((arch, program.cuda_source))
