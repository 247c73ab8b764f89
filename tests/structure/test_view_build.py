"""The bundle that the package ships is, byte for byte, what node builds from js/.

Without node or the npm packages only its digest is compared (`test_view_bundle`); TILELANG_NB_BROWSER, which CI sets,
asks for the build.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from structure.package_files import PACKAGE, ROOT

PACKAGES = ROOT / "js/node_modules/esbuild"
NODE = shutil.which("node")
PRINT = "import('./build.mjs').then(async (build) => process.stdout.write(await build.bundle()))"


@pytest.mark.skipif(
    (NODE is None or not PACKAGES.is_dir()) and not os.environ.get("TILELANG_NB_BROWSER"),
    reason="node or the npm packages of js/ are not installed",
)
def test_the_committed_bundle_is_what_the_sources_build() -> None:
    assert NODE is not None and PACKAGES.is_dir(), "run `npm ci` in js/"
    built = subprocess.run([NODE, "-e", PRINT], cwd=ROOT / "js", capture_output=True, check=True)
    committed = (PACKAGE / "notebook/static/widget.js").read_bytes()
    assert built.stdout == committed, "run `make view` and commit the bundle"
