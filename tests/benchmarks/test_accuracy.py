"""What the benchmark takes for found, for a false alarm, for neither: on small made-up code, without any package."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from benchmarks.accuracy import __main__ as program
from benchmarks.accuracy import table
from benchmarks.accuracy.alone import judge_alone, shown_functions
from benchmarks.accuracy.conjuncts import has_static_conjunct
from benchmarks.accuracy.extract import Extractor, file_name, is_configured, statements_of, verdict
from benchmarks.accuracy.interval import Share
from benchmarks.accuracy.linting import Finding, read
from benchmarks.accuracy.packages import (
    PackageError,
    copy_package,
    found_sites,
    judge,
    parse_truth,
    truths,
    version_of,
)
from benchmarks.accuracy.programs import DATA, judge_cases, judge_variants, load, surprises
from benchmarks.accuracy.statements import Source

MODEL = """\
class Model(Module):
    def forward(self, x, mask=None, flag: bool = False):
        print(
            x,
        )
        if (
            x.dtype == half
            and x.isinf().any()
        ):
            x = x.clamp(
                0, 1)
        elif x.max() > 0:
            x = x + 1
        y = (
            x if flag and x.any() else
            -x)
        return helper(x)

def helper(x):
    return x.item()

def other(x):
    return x.item()
"""
PRINT, IF, CLAMP, ELIF, PLUS, TERNARY, RETURN, ITEM, OTHER = 3, 6, 10, 12, 13, 14, 17, 20, 23


def source() -> Source:
    return Source(MODEL)


def finding(line: int, last: int | None = None, column: int = 9, *, hidden: bool = False) -> Finding:
    return Finding("m.py", (line, last or line), column, "GM101", hidden)


def truth(*statements: tuple[int, int], executed: tuple[tuple[int, int], ...] = ((1, 99),)) -> object:
    sites = [{"file": "m.py", "statement": list(lines), "func": "forward", "gb": ["GB0170"]} for lines in statements]
    return parse_truth(
        {"package": "p", "version": "1", "sites": sites, "executed": {"m.py": [list(lines) for lines in executed]}}
    )


# ---- statements


def test_compound_statements_count_with_their_header_only() -> None:
    assert source().statements((IF, IF)) == [(6, 8)]
    assert source().statements((8, 8)) == [(6, 8)]
    assert source().statements((ELIF, ELIF)) == [(12, 12)]
    assert source().statements((11, 11)) == [(10, 11)]
    assert source().statements((2, 2)) == [(2, 2)]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("for a in (\n  b,\n):\n    c()\n", 1, (1, 3)),
        ("with a as (\n  b\n), c:\n    d()\n", 3, (1, 3)),
        ("@d\ndef f(\n  a=1,\n):\n    return a\n", 1, (1, 3)),
        ("class C(\n  B,\n  metaclass=M):\n    x = 1\n", 3, (1, 3)),
        ("try:\n    a()\nexcept (\n  B,\n  C):\n    d()\n", 4, (3, 5)),
        ("match (\n  a\n):\n    case 1 if b:\n        c()\n", 2, (1, 2)),
        ("match a:\n    case [\n      1]:\n        c()\n", 3, (2, 3)),
        ("async def f():\n    async for a in b:\n        c()\n", 2, (2, 2)),
    ],
)
def test_headers(text: str, line: int, expected: tuple[int, int]) -> None:
    assert Source(text).statements((line, line)) == [expected]


# ---- packages


def test_a_site_is_found_on_any_line_of_its_statement() -> None:
    known = truth((3, 5), (6, 8), (12, 12))
    found = found_sites(known, [finding(4), finding(7, 8)], {"m.py": source()})
    assert sorted(site.statement for site in found) == [(3, 5), (6, 8)]


def test_a_finding_in_a_body_does_not_find_the_header() -> None:
    assert not found_sites(truth((12, 12)), [finding(PLUS)], {"m.py": source()})


def test_what_is_hidden_is_found_and_never_a_false_alarm() -> None:
    result = judge(truth((ITEM, ITEM)), [finding(ITEM, hidden=True), finding(PRINT, hidden=True)], {"m.py": source()})
    assert (result.recall.hits, result.open.hits, result.precision.total, result.alarms) == (1, 0, 0, ())


def test_findings_on_statements_that_did_not_run_say_nothing() -> None:
    result = judge(truth((3, 5), executed=((4, 4),)), [finding(OTHER), finding(PRINT)], {"m.py": source()})
    assert (result.precision.hits, result.precision.total) == (1, 1)


def test_misses_and_false_alarms_are_listed() -> None:
    result = judge(truth((3, 5)), [finding(ELIF)], {"m.py": source()})
    assert [str(place) for place in result.misses] == ["m.py:3  print(  [GB0170]"]
    assert [str(place) for place in result.alarms] == ["m.py:12  elif x.max() > 0:  [GM101]"]
    assert result.failures == ["p-1: recall is below 95%", "p-1: precision is below 90%"]


def test_a_condition_with_a_static_part_is_set_apart_if_its_body_did_not_run() -> None:
    before = judge(truth(executed=((6, 8),)), [finding(IF, 8)], {"m.py": source()})
    assert (len(before.apart), len(before.alarms)) == (1, 0)
    after = judge(truth(executed=((6, 11),)), [finding(IF, 8)], {"m.py": source()})
    assert (len(after.apart), len(after.alarms)) == (0, 1)


def test_a_condition_without_a_static_part_is_not_set_apart() -> None:
    result = judge(truth(executed=((12, 12),)), [finding(ELIF)], {"m.py": source()})
    assert (len(result.apart), len(result.alarms)) == (0, 1)


def test_what_dynamo_confirms_is_set_apart_in_the_strict_figure_only() -> None:
    result = judge(truth((6, 8), executed=((6, 8),)), [finding(IF, 8)], {"m.py": source()})
    assert (result.precision.hits, result.precision.total, result.strict.total) == (1, 1, 0)


def test_a_conditional_expression_counts_from_its_test() -> None:
    text = "def f(x, flag: bool):\n    return (\n        x\n        if flag and x.any()\n        else -x)\n"
    known = truth(executed=((1, 2), (4, 5)))
    test, elsewhere = Finding("m.py", (4, 4), 12, "GM102"), Finding("m.py", (4, 4), 21, "GM102")
    result = judge(known, [test, elsewhere], {"m.py": Source(text)})
    assert (len(result.apart), len(result.alarms)) == (1, 1)


def test_an_if_that_holds_nothing_but_another_is_one_condition_with_it() -> None:
    lines = ["def f(self, x):", "    if self.training:", "        if x.any():", "            x = -x", "{}    return x"]
    known = truth(executed=((1, 3), (5, 9)))
    for between, apart in (("", 1), ("        x = x + 1\n", 0), ("    else:\n        x = x + 1\n", 0)):
        text = "\n".join(lines).format(between)
        result = judge(known, [finding(3)], {"m.py": Source(text)})
        assert (len(result.apart), len(result.alarms)) == (apart, 1 - apart), text


def test_an_operand_that_a_static_test_keeps_from_running_is_set_apart() -> None:
    text = "def f(x, lengths):\n    return (\n        lengths.tolist()\n        if {}\n        else None)\n"
    for condition, executed, apart in (
        ("lengths is not None", ((1, 2), (4, 5)), 1),
        ("lengths is not None", ((1, 5),), 0),
        ("x.any()", ((1, 2), (4, 5)), 0),
    ):
        result = judge(truth(executed=executed), [finding(3)], {"m.py": Source(text.format(condition))})
        assert (len(result.apart), len(result.alarms)) == (apart, 1 - apart), (condition, executed)
        assert result.raw.total == 1


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x.dtype == torch.float16 and x.any()", True),
        ("mask is not None and mask.any()", True),
        ("self.training and x.any()", True),
        ("not self.config.a.b and x.any()", True),
        ("isinstance(x, T) and x.any()", True),
        ("len(x) > 1 and x.any()", True),
        ("x.shape[0] > 1 and x.any()", True),
        ("x.size(0) == n + 1 and x.any()", True),
        ("(flag and x.any()) and x.all()", True),
        ("eager and x.any()", True),
        ("LIMIT and x.any()", True),
        ("x.any() and x.all()", False),
        ("x and x.any()", False),
        ("local and x.any()", False),
        ("hint and x.any()", False),
        ("is_tracing(x) and x.any()", False),
        ("x.max() > self.limit and x.any()", False),
        ("x.dtype == torch.float16 or x.any()", False),
        ("x.dtype == torch.float16", False),
    ],
)
def test_static_by_form(condition: str, expected: bool) -> None:
    text = f"def f(self, x, n: int, flag: bool, hint: 'Tensor', eager=False):\n    local = x\n    return {condition}\n"
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[1]
    assert isinstance(returned, ast.Return)
    assert returned.value is not None
    assert has_static_conjunct(returned.value, function) is expected


def test_only_what_is_shown_counts() -> None:
    entry = {"path": "m.py", "line": 3, "column": 9, "end_line": 5, "rule": "GM301", "suppressed": False}
    behind = {"path": "m.py", "line": 20, "rule": "GM401"}
    document = {"findings": [{**entry, "behind": [behind]}, {**entry, "suppressed": True}]}
    shown, hidden = read(document)
    assert (shown.lines, shown.hidden) == ((3, 5), False)
    assert (hidden.lines, hidden.rule, hidden.hidden) == ((20, 20), "GM401", True)


def package(folder: Path, version: str) -> Path:
    folder.mkdir()
    (folder / "__init__.py").write_text(f'import os\n__version__ = "{version}"\n', encoding="utf-8")
    (folder / "m.py").write_text(MODEL, encoding="utf-8")
    return folder


def test_another_version_is_not_measured(tmp_path: Path) -> None:
    folder = package(tmp_path / "p", "2")
    assert version_of(folder) == "2"
    with pytest.raises(PackageError, match="p 1 is needed"):
        copy_package(folder, truth(), tmp_path / "work")
    with pytest.raises(PackageError, match="is no package"):
        version_of(tmp_path / "nothing")


def test_a_package_is_linted_as_a_whole_and_file_by_file(tmp_path: Path) -> None:
    folder = package(tmp_path / "p", "1")
    model = "import torch\nfrom p.h import helper\n\n\nclass Model(torch.nn.Module):\n"
    model += "    def forward(self, x):\n        print(x)\n        return helper(x)\n"
    (folder / "m.py").write_text(model, encoding="utf-8")
    (folder / "h.py").write_text("import torch\n\n\ndef helper(x):\n    print(x)\n    return torch.relu(x)\n", "utf-8")
    sites = [
        {"file": "p/m.py", "statement": [7, 7], "func": "forward", "gb": ["GB0059"]},
        {"file": "p/h.py", "statement": [5, 5], "func": "helper", "gb": ["GB0059"]},
    ]
    known = parse_truth({"package": "p", "version": "1", "sites": sites, "executed": {}})
    (tmp_path / "work").mkdir()
    result, alone = program.run_package(known, folder, tmp_path / "work", alone=True)
    assert (result.recall, result.precision) == (Share(2, 2), Share(2, 2))
    assert alone is not None
    assert (alone.total, alone.shown, alone.kept, alone.misses) == (Share(1, 2), Share(1, 1), Share(1, 1), ())


# ---- one file at a time


def test_what_a_file_shows_to_be_traced() -> None:
    shown = shown_functions(source().tree)
    assert {"forward", "helper"} <= shown
    assert "other" not in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@torch.compile\ndef f(x): return g(x)\ndef g(x): return x\n", {"f", "g"}),
        ("@torch.compile(dynamic=True)\ndef f(x): return x\n", {"f"}),
        ("def f(x): return x\ng = torch.compile(f)\n", {"f"}),
        ("class A(torch.autograd.Function):\n    def forward(ctx, x): return x\n", set()),
        ("class A:\n    def forward(self, x): return x\n", set()),
        ("class A(B):\n    def forward(self, x): return self.g(x)\n    def g(self, x): return x\n", {"forward", "g"}),
        ("def f(x): return x\nre.compile(f)\n", set()),
    ],
)
def test_entries_by_name(text: str, expected: set[str]) -> None:
    assert shown_functions(ast.parse(text)) == expected


def test_alone_compares_with_the_package() -> None:
    known = truth((3, 5), (ITEM, ITEM), (OTHER, OTHER))
    first, second, third = known.sites
    result = judge_alone(known, {first}, {first, second, third}, {"m.py": source()})
    assert (result.total, result.shown, result.kept) == (Share(1, 3), Share(1, 2), Share(1, 2))
    assert [place.line for place in result.misses] == [ITEM]
    assert not judge_alone(known, {first}, {first}, {"m.py": source()}).failures


# ---- figures


@pytest.mark.parametrize(
    ("share", "low", "high"),
    [
        (Share(95, 100), 0.88825, 0.97846),
        (Share(0, 10), 0.0, 0.27753),
        (Share(10, 10), 0.72247, 1.0),
        (Share(0, 0), 0, 1),
    ],
)
def test_wilson(share: Share, low: float, high: float) -> None:
    assert share.interval == pytest.approx((low, high), abs=5e-5)


# ---- cases and variants


def case(name: str, lines: list[int], *, detect: bool) -> dict[str, object]:
    return {"file": "m.py", "lines": lines, "expected": {"detect": detect}, "id": name}


def test_cases_are_judged_by_the_right_line() -> None:
    sources = {"m.py": source()}
    breaking = [case("a", [4, 12], detect=True)]
    assert judge_cases(breaking, [finding(PRINT, 5)], sources).detected == Share(1, 1)
    wrong = judge_cases(breaking, [finding(ITEM)], sources)
    assert wrong.detected == Share(0, 1)
    assert wrong.failures
    assert wrong.elsewhere == ("m.py:20  return x.item()  [GM101]",)


def test_cases_without_a_break_stay_quiet() -> None:
    quiet = [case("a", [], detect=False)]
    assert judge_cases(quiet, [], {"m.py": source()}).failures == []
    result = judge_cases(quiet, [finding(ITEM)], {"m.py": source()})
    assert result.quiet == Share(0, 1)
    assert result.wrong == ("m.py:20  return x.item()  [GM101]",)


def variant(name: str, kind: str) -> dict[str, object]:
    return {"name": name, "file": "m.py", "verdict": kind, "statements": [[3, 5], [20, 20]], "lines": [20]}


def index(*variants: dict[str, object]) -> dict[str, object]:
    return {"variants": variants, "configured": 7}


def test_variants_that_break_need_a_finding_in_their_functions() -> None:
    sources = {"m.py": source()}
    known = index(variant("a", "breaks"))
    found = judge_variants(known, [finding(ITEM)], sources, {})
    assert (found.flagged, found.missed, found.elsewhere, found.failures) == (Share(1, 1), (), (), [])
    assert judge_variants(known, [finding(4)], sources, {}).elsewhere == ("a",)
    missed = judge_variants(known, [finding(OTHER)], sources, {})
    assert (missed.flagged, missed.missed) == (Share(0, 1), ("a",))


def test_variants_that_do_not_break_may_have_no_finding_at_all() -> None:
    result = judge_variants(index(variant("a", "quiet")), [finding(OTHER)], {"m.py": source()}, {"a": "why"})
    assert (result.quiet, result.false, result.surprises) == (Share(0, 1), ("a",), ())
    assert result.failures == ["variants: more than 5% of those that do not break are flagged"]


def test_variants_that_raise_are_not_counted() -> None:
    result = judge_variants(index(variant("a", "raises")), [], {"m.py": source()}, {})
    assert (result.flagged.total, result.quiet.total, result.apart) == (0, 0, (("a", False),))


def test_the_table_of_leftovers_is_exact() -> None:
    assert surprises(["a", "b"], {"a": "why", "b": "why"}) == []
    assert surprises(["a"], {}) == ["a: left, and no reason is given"]
    assert surprises([], {"a": "why"}) == ["a: a reason is given, and it is not left"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "quiet"),
        ({"fullgraph": "ok-DIFF"}, "quiet"),
        ({"graphs": 2}, "breaks"),
        ({"graphs": 0}, "breaks"),
        ({"breaks": 1}, "breaks"),
        ({"reasons": [["GB0059", "Failed", 1]]}, "breaks"),
        ({"fullgraph": "Unsupported: Data-dependent branching"}, "breaks"),
        ({"eager": ["exc", "TypeError", "no"], "graphs": 0}, "raises"),
    ],
)
def test_verdicts(changes: dict[str, object], expected: str) -> None:
    measured = {"eager": "ok", "graphs": 1, "breaks": 0, "reasons": [], "fullgraph": "ok"}
    assert verdict({**measured, **changes}) == expected


PATTERNS = """\
import logging
import torch
import torch.nn as nn
from harness import measure

X = torch.ones(2)
P = []
logger = logging.getLogger("a")
logger.propagate = False
logging.Logger.once = print
OFF = logging.getLogger("b")

def pat(name, *args):
    return lambda fn: P.append((name, fn, args or (X,)))

def helper(x):
    return x + SCALE
SCALE = 2

@pat("call a helper", X * 2)
def f(x):
    return helper(x)

try:
    @pat("say once")
    def f(x):
        logger.once("a")
        return x
except ImportError:
    pass

@mod("module")
class M(nn.Module):
    def forward(self, x):
        return x

for level in ("info", "log"):
    def mk(level):
        if level == "log":
            def f(x):
                logger.log(1, "hi")
                return x
        else:
            def f(x):
                getattr(logger, level)("hi")
                return x
        return f
    pat("logger.%s" % level)(mk(level))
"""


def test_variants_are_programs_of_their_own() -> None:
    extractor = Extractor(PATTERNS)
    programs = {pattern.name: extractor.program(pattern) for pattern in extractor.patterns}
    assert list(programs) == ["call a helper", "say once", "module", "logger.info", "logger.log"]
    assert programs["call a helper"] == (
        "# call a helper\n\nimport torch\n\nX = torch.ones(2)\n\n\ndef helper(x):\n    return x + SCALE\n\n\n"
        "SCALE = 2\n\n\ndef f(x):\n    return helper(x)\n\n\ncompiled = torch.compile(f)\ncompiled(X * 2)\n"
    )
    assert 'logging.Logger.once = print\n\n\ndef f(x):\n    logger.once("a")' in programs["say once"]
    assert 'logger = logging.getLogger("a")\nlogger.propagate = False\n' in programs["say once"]
    assert "OFF" not in programs["say once"]
    assert "torch.compile(M())" in programs["module"]
    assert 'logger.info("hi")' in programs["logger.info"]
    assert 'logger.log(1, "hi")' in programs["logger.log"]
    assert statements_of(programs["call a helper"]) == [[9, 9], [16, 16]]


def test_file_names_are_unique() -> None:
    taken: set[str] = set()
    assert [file_name(name, taken) for name in (".item()", "item", "***")] == ["item.py", "item_2.py", "variant.py"]


def test_configurations_are_told_from_names_with_brackets() -> None:
    names = {"a", "a [scalar]", "x[i]", "b [c]"}
    assert [name for name in sorted(names) if is_configured(name, names)] == ["a [scalar]"]


# ---- the data


def test_cases_are_whole() -> None:
    cases = load("cases/index.json")["cases"]
    assert len(cases) == 54
    assert sum(not entry["expected"]["detect"] for entry in cases) == 13
    for entry in cases:
        text = Source((DATA / "cases" / entry["file"]).read_text(encoding="utf-8"))
        assert bool(entry["lines"]) is entry["expected"]["detect"]
        assert all(text.line(line) for line in entry["lines"])


def test_variants_are_whole() -> None:
    known = load("variants.json")
    assert known["measured"] == len(known["variants"]) + known["configured"] == 394
    files = {entry["file"]: entry for entry in known["variants"]}
    assert sorted(files) == sorted(path.name for path in (DATA / "variants").glob("*.py"))
    for name, entry in files.items():
        text = (DATA / "variants" / name).read_text(encoding="utf-8")
        assert "torch.compile(" in text
        assert entry["statements"] == statements_of(text)
        inside = [line for first, last in entry["statements"] for line in range(first, last + 1)]
        assert set(entry["lines"]) <= set(inside)
    assert set(load("leftovers.json")) <= {entry["name"] for entry in known["variants"]}


def test_measured_packages_are_whole() -> None:
    assert [(known.name, len(known.sites)) for known in truths()] == [
        ("transformers-4.52.4", 97),
        ("transformers-5.24.0", 63),
    ]


# ---- the program


def test_unknown_parts_and_incomplete_pages_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["nothing"], ["cases", "--write-readme"]):
        with pytest.raises(SystemExit) as stop:
            program.main(arguments)
        assert stop.value.code == 2
    assert "unknown part: nothing" in capsys.readouterr().err


def test_a_wrong_folder_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(tmp_path / "transformers", "1")
    assert program.main(["packages", "--transformers-4.52.4", str(folder)]) == 2
    assert "4.52.4 is needed" in capsys.readouterr().err


def test_figures_that_miss_their_target_are_marked() -> None:
    result = judge(truth((3, 5), (12, 12)), [finding(PRINT)], {"m.py": source()})
    results = table.Results(packages=[result])
    recall, precision, _ = table.rows(results)
    assert recall[1:3] == ("1 of 2", "50.0% !")
    assert precision[1:3] == ("1 of 1", "100.0%")
    assert "m.py:12  elif x.max() > 0:" in table.details(results)
    assert json.loads(json.dumps(table.as_json(results)))["failures"] == ["p-1: recall is below 95%"]
