"""What is told of a run, from values made by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from graphmend.findings import BreakSite, Frame
from graphmend.report.traced import Trace, as_json, as_text
from graphmend.trace.explain import Explanation, Site
from graphmend.trace.launch import Observation
from graphmend.trace.log import Break, Log, SkippedFrame

RUN = Observation("2.13.0", "3.11.7", True, (1, 0), 1, True, "", Log(()), (), None)
NOTHING = Explanation((), (), (), (), (), ())
DEEP = BreakSite(
    "pkg/a.py", 7, 8, "A.forward", ("GB0007",), "a reason", inside=Frame("/lib/b.py", 3, "deep"), source_line="  f(x)"
)
BROKEN = Log((Break("/lib/b.py", 3, ()),))


def last(trace: Trace) -> str:
    return as_text(trace).split("\n\n")[-1]


def test_a_whole_call() -> None:
    assert last(Trace("t", RUN, NOTHING)) == (
        "1 graph in the first call, 0 more in the next (torch 2.13.0, Python 3.11.7).\n"
        "The call is whole: one graph, and it works with `fullgraph=True`.\n"
    )


def test_one_graph_that_has_to_be_able_to_break() -> None:
    trace = Trace("t", replace(RUN, graphs=(1,), fullgraph=False, obstacle="Unsupported: x"), NOTHING)
    assert last(trace).endswith("\nIt is one graph, but does not work with `fullgraph=True`: Unsupported: x\n")
    assert (trace.is_broken, trace.is_whole) == (True, False)


def test_no_graph_is_the_worst_case() -> None:
    skipped = (SkippedFrame("pkg/a.py", "A.forward", 3, "why"), SkippedFrame("pkg/a.py", "run", 9, "why", is_rest=True))
    run = replace(RUN, graphs=(0, 0, 0), fullgraph=None, log=Log((), skipped))
    trace = Trace("t", run, replace(NOTHING, skipped=skipped))
    assert (trace.is_broken, trace.is_whole) == (True, False)
    assert as_text(trace) == (
        "Left to Python as a whole:\n  pkg/a.py:3: A.forward: why\n  pkg/a.py:9: the rest of run: why\n\n"
        "0 graphs in the first call, 0, 0 more in the next 2 (torch 2.13.0, Python 3.11.7).\n"
        "Nothing of the call was compiled.\n"
    )


def test_what_broke_deeper_down() -> None:
    trace = Trace("t", replace(RUN, graphs=(3,), log=BROKEN), replace(NOTHING, sites=(Site(DEEP, ()),)))
    assert as_text(trace) == (
        "pkg/a.py:7: GB0007 a reason\n  |\n7 |   f(x)\n  |\n  = in: A.forward\n  = broke at: deep (/lib/b.py:3)\n"
        "  = found: nothing; no rule explains it\n\n"
        "3 graphs in the first call; 2 more than one (torch 2.13.0, Python 3.11.7).\n"
        "The graph broke at 1 statement; no rule explains it.\n"
    )


def test_what_broke_elsewhere_only() -> None:
    site = BreakSite("/lib/b.py", 3, 3, "deep", (), "")
    trace = Trace("t", replace(RUN, graphs=(2,), log=BROKEN), replace(NOTHING, elsewhere=(site,)))
    text = as_text(trace)
    assert "Broken outside of your files:\n  /lib/b.py:3: deep\n" in text
    assert text.endswith("All that broke is outside of your files; `--path FOLDER` makes a folder your own.\n")


def test_a_program_has_no_calls() -> None:
    trace = Trace("t", replace(RUN, is_of_calls=False, graphs=(4,), fullgraph=None), NOTHING)
    assert last(trace) == "4 graphs in all (torch 2.13.0, Python 3.11.7).\nNothing broke.\n"
    document = json.loads(as_json(trace))
    assert (document["graphs"], document["calls"], document["whole"]) == (4, None, None)


def test_what_failed_is_not_called_whole() -> None:
    assert Trace("t", replace(RUN, failure="it raised"), NOTHING).is_whole is None


def test_colour_only_on_request() -> None:
    trace = Trace("t", RUN, replace(NOTHING, sites=(Site(DEEP, ()),)))
    assert "\x1b[" not in as_text(trace)
    assert "\x1b[1mGB0007\x1b[0m" in as_text(trace, colour=True)


@pytest.mark.parametrize(
    "path", ["/lib/graphmend/runtime/select.py", "pkg/_graphmend.py", "C:\\lib\\graphmend\\runtime\\select.py"]
)
def test_a_branch_that_a_mended_place_keeps(path: str) -> None:
    site = replace(DEEP, inside=Frame(path, 91, "_attempt"))
    explanation = replace(NOTHING, sites=(Site(site, ()),))
    text = as_text(Trace("t", replace(RUN, graphs=(2,), log=BROKEN), explanation))
    assert "= found: mended, but the branch stays where a gradient is needed or an arm is not traced\n" in text
    assert "no rule explains it\n  =" not in text
