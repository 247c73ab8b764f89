"""Every code has all that belongs to one: a class, a page, an explanation, and goldens of what is said of the bad text of
its page, as text and as JSON (`tests/goldens/codes/TLxxx.txt` and `.json`).

Nothing here is listed by hand: the codes are those of the catalogue and of the specification's table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from source.test_page_examples import fault, found_in  # noqa: F401  (a fixture)

import tilelang_nb
from tilelang_nb.report.diagnostic_json import diagnostic as as_json
from tilelang_nb.source.catalogue import CATALOGUE
from tilelang_nb.source.catalogue.page import FOLDER, explain, page
from tilelang_nb.source.diagnostic import Message
from tilelang_nb.source.render import render
from tilelang_nb.source.text import Text

GOLDENS = Path(__file__).parents[1] / "goldens" / "codes"
# The codes that are fixed; others may be added.
FIXED = [
    "TL001",
    "TL002",
    "TL003",
    "TL004",
    "TL005",
    "TL101",
    "TL102",
    "TL103",
    "TL104",
    "TL105",
    "TL106",
    "TL107",
    "TL108",
    "TL109",
    "TL110",
    "TL111",
    "TL112",
    "TL113",
    "TL114",
    "TL115",
    "TL116",
    "TL117",
    "TL118",
    "TL119",
    "TL120",
    "TL121",
    "TL122",
    "TL123",
    "TL124",
    "TL125",
    "TL126",
    "TL127",
    "TL128",
    "TL130",
    "TL131",
    "TL132",
    "TL133",
    "TL134",
    "TL135",
    "TL136",
    "TL137",
    "TL138",
    "TL139",
    "TL140",
    "TL141",
    "TL143",
    "TL144",
    "TL145",
    "TL201",
    "TL202",
    "TL203",
    "TL204",
    "TL205",
    "TL206",
    "TL207",
    "TL208",
    "TL209",
    "TL210",
    "TL211",
    "TL212",
    "TL213",
    "TL214",
    "TL301",
    "TL302",
    "TL401",
    "TL402",
    "TL403",
    "TL404",
    "TL405",
    "TL900",
]
FAULTY = re.compile(
    r'(please report it with this text:)(?:(?!\n\n|",\n).)*', re.DOTALL
)  # the rest depends on the machine


def test_the_fixed_codes_are_all_there() -> None:
    assert set(FIXED) <= set(CATALOGUE)


@pytest.mark.parametrize("code", sorted({*CATALOGUE, *FIXED}))
def test_a_code_lacks_nothing(code: str) -> None:
    assert issubclass(CATALOGUE[code], Message) and CATALOGUE[code].code == code and CATALOGUE[code].slug
    assert (FOLDER / f"{code}.md").is_file(), "its page"
    about = page(code)
    assert about.bad.strip() and about.said.strip() and about.good.strip(), "its texts"
    assert (GOLDENS / f"{code}.txt").is_file(), "its golden text"
    assert (GOLDENS / f"{code}.json").is_file(), "its golden JSON"
    assert about.title in explain(code) and about.good.strip().split("\n")[0] in explain(code), "its explanation"


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in GOLDENS.iterdir()} == set(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_what_is_said_of_the_bad_text_as_text_and_as_json(
    code: str, request: pytest.FixtureRequest, golden: Callable[[str, str], None]
) -> None:
    about = page(code)
    if about.run == "fault":
        request.getfixturevalue("fault")
    text, found = Text(about.bad, "In[1]"), found_in(about.bad, about.run)
    assert found
    made = [as_json(one, text) for one in found]
    for one in made:
        for fix in one["fixes"]:
            fix.pop("patched")  # follows from the edits
    golden(FAULTY.sub(r"\1 ...", render(text, found)), f"codes/{code}.txt")
    golden(FAULTY.sub(r"\1 ...", json.dumps(made, indent=1, ensure_ascii=False)) + "\n", f"codes/{code}.json")


@pytest.mark.parametrize("code", [code for code in CATALOGUE if page(code).run == "compile"])
def test_the_json_of_a_cell_holds_what_its_text_says(code: str) -> None:
    made = tilelang_nb.compile_cell(page(code).bad, {"T": tilelang_nb.language}, filename="In[1]", target="sim")
    (said,) = {one["code"] for one in json.loads(made.to_json())["diagnostics"]}
    shown = made.to_text()
    assert said == code
    for one in json.loads(made.to_json())["diagnostics"]:
        place = f"In[1]:{one['span'][0]}:{one['span'][1] + 1}"
        assert all(part in shown for part in (f"{one['severity']}[{code}]", place, *one["help"].split("\n")[:1]))
