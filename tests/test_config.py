"""The configuration file: where it is found, what it may hold, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend.config import DEFAULT_EXCLUDE, AssumeCallers, OutputFormat, Vendor
from graphmend.configfile import find_config, load_config
from graphmend.errors import ConfigError
from graphmend.findings import Confidence, Severity


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


FULL = """
[project]
name = "select"

[tool.graphmend]
select = ["GM1"]
extend-select = ["GM301"]
ignore = ["GM102"]
extend-ignore = ["GM103"]
exclude = ["old"]
extend-exclude = ["older"]
force-exclude = true
respect-gitignore = false
rules = ["lint/own.yaml"]
runtime = "vendor=src/pkg/_mend.py"
output-format = "json"
fail-on = "error"
min-confidence = "high"
generated-markers = ["made by a machine"]
fix-generated = true
assume-callers = "none"
torchscript = ["pkg.scripted"]
torch = "2.6"

[tool.graphmend.per-file-ignores]
"tests/*" = ["GM3"]
"""


def test_every_key_has_an_effect(project: Path) -> None:
    config = load_config(write(project / "pyproject.toml", FULL))
    root = project.as_posix()
    assert config.root == root
    assert config.select == ("GM1",)
    assert config.extend_select == ("GM301",)
    assert config.ignore == ("GM102",)
    assert config.extend_ignore == ("GM103",)
    assert [globs.patterns for globs in config.excluded] == [("old",), ("older",)]
    assert config.force_exclude is True
    assert config.respect_gitignore is False
    assert config.packs == (f"{root}/lint/own.yaml",)
    assert config.runtime == Vendor(f"{root}/src/pkg/_mend.py")
    assert config.output_format is OutputFormat.JSON
    assert config.fail_on is Severity.ERROR
    assert config.min_confidence is Confidence.HIGH
    assert config.generated_markers == ("made by a machine",)
    assert config.fix_generated is True
    assert config.assume_callers is AssumeCallers.NONE
    assert config.torchscript == ("pkg.scripted",)
    assert config.torch == "2.6"
    ((globs, codes),) = config.per_file_ignores
    assert (globs.root, globs.patterns, codes) == (root, ("tests/*",), ("GM3",))


def test_a_file_of_its_own_has_the_keys_at_its_top(project: Path) -> None:
    config = load_config(write(project / "graphmend.toml", 'extend-exclude = ["older"]\nruntime = "vendor"\n'))
    assert [globs.patterns for globs in config.excluded] == [DEFAULT_EXCLUDE, ("older",)]
    assert config.runtime == Vendor(None)


def test_the_nearest_file_above_all_paths_holds(project: Path) -> None:
    top = write(project / "pyproject.toml", "[tool.graphmend]\n")
    write(project / "a" / "pyproject.toml", "[tool.other]\n")
    own = write(project / "a" / "b" / "graphmend.toml", "")
    write(project / "a" / "b" / "pyproject.toml", "[tool.graphmend]\n")
    write(project / "a" / "b" / "m.py", "")
    assert find_config(["a/b/m.py"]) == own
    assert find_config(["a/b"]) == own
    assert find_config(["a/b/m.py", "a/new.py"]) == top
    assert find_config([]) == top


def test_without_a_file_there_is_none(project: Path) -> None:
    write(project / "pyproject.toml", "[project]\n")
    found = find_config(["m.py"])
    assert found is None or project not in found.parents


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.graphmend]\nselect = []\nselct = []\n",
            "pyproject.toml:3: unknown key `selct` (did you mean `select`?)",
        ),
        ('[tool.graphmend]\n\n"fail-onn" = 1\n', "pyproject.toml:3: unknown key `fail-onn` (did you mean `fail-on`?)"),
        ("[tool.graphmend]\nselect = 'GM1'\n", "pyproject.toml:2: `select` must be a list of strings"),
        ("[tool.graphmend]\nselect = [1]\n", "pyproject.toml:2: `select` must be a list of strings"),
        ("[tool.graphmend]\nfix-generated = 1\n", "pyproject.toml:2: `fix-generated` must be true or false"),
        (
            "[tool.graphmend]\nfail-on = 'warnings'\n",
            "`warnings` is not one of error, warning, note; did you mean `warning`?",
        ),
        ("[tool.graphmend]\nruntime = 'copy'\n", "pyproject.toml:2: `runtime`: expected `package`, `vendor` or"),
        ("[tool.graphmend]\ntorch = '2'\n", "pyproject.toml:2: `torch`: expected a version like `2.13`"),
        ("[tool.graphmend]\nper-file-ignores = []\n", "`per-file-ignores` must be a table of patterns"),
        (
            "[tool.graphmend.per-file-ignores]\na = 'GM1'\n",
            "pyproject.toml:1: `per-file-ignores` must be a list of strings",
        ),
        ("[tool]\ngraphmend = 1\n", "pyproject.toml:1: `tool.graphmend` must be a table"),
        ("[tool.graphmend]\nselect = ]\n", "pyproject.toml:2:10: broken TOML: Invalid value"),
        ("[tool.graphmend]\nselect = [\n", "pyproject.toml:2: broken TOML"),
    ],
)
def test_a_mistake_is_told_with_its_place(project: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(project / "pyproject.toml", text))
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot read the configuration"):
        load_config(project / "gone.toml")
    (project / "bad.toml").write_bytes(b"a = '\xff'\n")
    with pytest.raises(ConfigError, match=r"bad\.toml: the configuration is not UTF-8"):
        load_config(project / "bad.toml")
