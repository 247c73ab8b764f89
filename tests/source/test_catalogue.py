"""Every code: stable, worded by the rules of this project, with a page that can be read and shown."""

from __future__ import annotations

import ast
import re
from dataclasses import fields

import pytest

from tilelang_nb.source.catalogue import CATALOGUE
from tilelang_nb.source.catalogue.page import FOLDER, UnknownCode, explain, listing, page

FAMILIES = {"sources": "TL0", "syntax": "TL1", "language": "TL1", "names": "TL13", "operations": "TL2"}
COMPILER_WORDS = {
    "invalid",
    "illegal",
    "ast",
    "node",
    "token",
    "tir",
    "tirx",
    "primfunc",
    "lvalue",
    "identifier",
    "semantic",
}


def texts(code: str) -> list[str]:
    message = CATALOGUE[code]
    return [message.text, message.label, message.advice]


def test_codes_slugs_and_severities_do_not_change(golden):
    rows = [f"{code} {message.slug} {message.severity}\n" for code, message in CATALOGUE.items()]
    golden("".join(rows), "source/codes.txt")


def test_slugs_are_unique():
    assert len({message.slug for message in CATALOGUE.values()}) == len(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
class TestMessage:
    def test_the_label_fits_beside_the_caret(self, code):
        assert 0 < len(CATALOGUE[code].label) <= 60
        assert "{" not in CATALOGUE[code].label

    def test_its_fields_fill_its_texts(self, code):
        message = CATALOGUE[code]
        names = [field.name for field in fields(message) if field.metadata.get("shown", True)]
        filled = message(**{name: f"<{name}>" for name in names}).at(None)
        assert all(f"<{name}>" in filled.message + filled.help for name in names)

    def test_it_says_one_thing_to_write_instead(self, code):
        assert CATALOGUE[code].advice

    def test_it_uses_no_compiler_words(self, code):
        words = {
            word.lower() for text in texts(code) for word in re.findall(r"[A-Za-z]+", re.sub(r"`[^`]*`", "", text))
        }
        assert not words & COMPILER_WORDS

    def test_backticks_come_in_pairs_and_no_sentence_ends_in_a_full_stop(self, code):
        for text in texts(code):
            assert text.count("`") % 2 == 0
            assert not text.endswith(".")

    def test_it_belongs_to_the_family_of_its_module(self, code):
        module = CATALOGUE[code].__module__.rpartition(".")[2]
        assert code.startswith(FAMILIES.get(module, ("TL3", "TL4", "TL9")))

    def test_its_page_can_be_read(self, code):
        found = page(code)
        assert (found.code, found.slug) == (code, CATALOGUE[code].slug)
        assert page(found.slug) is page(code) or page(found.slug) == page(code)
        assert len(found.title) <= 80 and not found.title.endswith(".")
        assert found.run in ("compile", "launch", "findings", "device", "fault")
        assert found.said.startswith(f"{found.severity}[{code}]")
        assert found.bad != found.good

    def test_the_good_text_of_its_page_is_python(self, code):
        ast.parse(page(code).good)

    def test_it_can_be_explained(self, code):
        text = explain(code)
        assert text.startswith(f"{code} {CATALOGUE[code].slug}")
        assert "```" not in text and "---" not in text.split("What is said:")[0]


def test_every_page_has_a_code():
    assert {file.stem for file in FOLDER.iterdir()} == set(CATALOGUE)


def test_all_codes_are_listed():
    assert [line.split() for line in listing().splitlines()] == [[c, CATALOGUE[c].slug] for c in sorted(CATALOGUE)]


def test_explaining_takes_any_spelling_of_a_code():
    assert explain("101") == explain("tl101") and explain("2") == explain("TL002")
    assert "there is TL900" in explain("TL999") and "codes run" in explain("TL777")
    assert explain("tl101") == explain(" TL101 ") == explain("chained-assignment")


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("TL147", "TL14"), ("chained-asignment", "TL101"), ("", "TL001 to TL900"), ("../x", "TL001 to")],
)
def test_an_unknown_code_is_answered_with_the_nearest(asked, nearest):
    assert nearest in explain(asked) and explain(asked).count("\n") == 1
    with pytest.raises(UnknownCode):
        page(asked)


def test_an_explanation_reads_well(golden):
    golden(explain("TL101"), "source/explain_TL101.txt")
    golden(explain("TL211"), "source/explain_TL211.txt")
