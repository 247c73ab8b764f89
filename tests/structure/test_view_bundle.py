"""The bundle that the package ships is the one that its sources in js/ build: told by the digest in its first line, without node."""

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "tilelang_nb" / "notebook" / "static" / "widget.js"
JS = ROOT / "js"


def digest() -> str:
    """The same as in js/build.mjs: paths and contents of the sources, sorted, then of the build itself."""
    sources = sorted(str(path.relative_to(JS)).replace("\\", "/") for path in (JS / "src").rglob("*") if path.is_file())
    found = hashlib.sha256()
    for path in [*sources, "build.mjs", "package-lock.json"]:
        found.update(path.encode() + b"\0" + (JS / path).read_bytes() + b"\0")
    return found.hexdigest()


@pytest.mark.skipif(not JS.is_dir(), reason="the sources of the view are not part of this distribution")
def test_the_bundle_is_what_the_sources_build() -> None:
    first = BUNDLE.read_text("utf-8").partition("\n")[0]
    assert f"sources {digest()}" in first, "run `npm install && npm run build` in js/ and commit the bundle"


def test_the_bundle_keeps_its_budget() -> None:
    assert BUNDLE.stat().st_size <= 120_000


def test_the_bundle_can_stand_in_a_page() -> None:
    text = BUNDLE.read_text("utf-8").lower()
    assert "</script" not in text and "<!--" not in text
    assert "http://" not in text and "https://" not in text, "the view asks nothing of the network"
