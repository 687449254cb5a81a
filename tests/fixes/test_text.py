"""The text that outline writes: every byte that it has no business with stays, and what it adds looks like the file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from graphmend import engine
from graphmend.config import Config, Vendor
from graphmend.fixes.identifiers import snake_case
from graphmend.fixes.style import Style, reindent
from graphmend.source.text import SourceText

PLAIN = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        print("x", x)
        return x
"""

FIXED = """\
import graphmend
import torch
from torch import nn


@graphmend.effect
def _print_model(x):
    print("x", x)


class Model(nn.Module):
    def forward(self, x):
        _print_model(x)
        return x
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mend(data: bytes | str) -> bytes:
    path = Path("module.py")
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    config = Config(root=str(Path.cwd()), select=("GM104", "GM201", "GM301", "GM302", "GM303"))
    report = engine.run(engine.Request((str(path),), config, fix=True, write=True))
    assert report.errors == ()
    return path.read_bytes()


def body(*lines: str, indent: str = "    ") -> str:
    return (
        PLAIN[: PLAIN.index("class")]
        + "class Model(nn.Module):\n"
        + "".join(f"{indent}{line}\n" if line else "\n" for line in lines)
    )


def inserted(text: str, fixed: str) -> str:
    """The new code in front of the class."""
    start = fixed.index("@graphmend.effect")
    return fixed[start : fixed.index("class Model")].rstrip("\n") + "\n"


# -------------------------------------------------------------------- bytes


def test_plain() -> None:
    assert mend(PLAIN).decode() == FIXED


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_newlines_are_kept(newline: str) -> None:
    assert mend(PLAIN.replace("\n", newline)).decode() == FIXED.replace("\n", newline)


def test_byte_order_mark_is_kept() -> None:
    assert mend(b"\xef\xbb\xbf" + PLAIN.encode()) == b"\xef\xbb\xbf" + FIXED.encode()


def test_encoding_is_kept() -> None:
    text = "# -*- coding: latin-1 -*-\n" + PLAIN.replace('"x"', '"gr\u00f6\u00dfe"')
    fixed = "# -*- coding: latin-1 -*-\n" + FIXED.replace('"x"', '"gr\u00f6\u00dfe"')
    assert mend(text.encode("latin-1")) == fixed.encode("latin-1")


def test_characters_before_the_place() -> None:
    text = PLAIN.replace('print("x", x)', 'a = "\u00e4\U0001f600"; print("\u00e4", x); b = a')
    assert "\u00e4\U0001f600" + '"; _print_model(x); b = a' in mend(text).decode()


def test_tabs() -> None:
    assert mend(PLAIN.replace("    ", "\t")).decode() == FIXED.replace("    ", "\t")


def test_two_spaces() -> None:
    assert mend(PLAIN.replace("    ", "  ")).decode() == FIXED.replace("    ", "  ")


def test_form_feed() -> None:
    text = PLAIN.replace("\n\nclass", "\n\f\nclass")
    assert mend(text).decode() == FIXED.replace("\n\n\n@graphmend", "\n\n\f\n@graphmend")


def test_no_last_newline() -> None:
    assert mend(PLAIN.rstrip("\n")).decode() == FIXED.rstrip("\n")


# -------------------------------------------------------------------- moved text


def test_strings_of_several_lines_keep_their_characters() -> None:
    text = body(
        "def forward(self, x):",
        "    if (x < 0).any():",
        "        # about to raise",
        '        raise ValueError("""first',
        "  second\\",
        "\tthird {x}",
        "\"\"\" + f'''{x}",
        "    {x}",
        "''' \"a\" \\",
        '            "b")',
        "    return x",
    )
    fixed = mend(text).decode()
    before = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    after = [node.value for node in ast.walk(ast.parse(fixed)) if isinstance(node, ast.Constant)]
    assert sorted(map(repr, before)) == sorted(map(repr, after))
    assert (
        'def _check_model(bad, x):\n    if bad:\n        # about to raise\n        raise ValueError("""first\n' in fixed
    )


def test_text_with_less_indentation_than_its_statement() -> None:
    text = body("def forward(self, x):", "    print(", "'x',", "  x,", "    # comment", " )", "    return x")
    assert inserted(text, mend(text).decode()) == (
        "@graphmend.effect\ndef _print_model(x):\n    print(\n    'x',\n    x,\n    # comment\n    )\n"
    )


def test_reindent_blank_lines() -> None:
    assert reindent("if x:\n\n        y\n   \n        z", "    ", "\t") == "\tif x:\n\n\t    y\n\n\t    z"


def test_comments_stay_with_what_they_belong_to() -> None:
    text = body(
        "def forward(self, x):",
        "    # above",
        "    print(  # first",
        "        x,  # second",
        "    )  # behind",
        "    # below",
        "    return x",
    )
    fixed = mend(text).decode()
    assert (
        inserted(text, fixed)
        == "@graphmend.effect\ndef _print_model(x):\n    print(  # first\n        x,  # second\n    )\n"
    )
    assert "    # above\n        _print_model(x)  # behind\n        # below\n" in fixed


def test_long_calls_are_wrapped() -> None:
    names = [f"value_number_{number}" for number in range(8)]
    text = body(
        "def forward(",
        "    self,",
        *(f"    {name}," for name in names),
        "):",
        "    print(",
        *(f"        {name}," for name in names),
        "    )",
        "    return 0",
    )
    fixed = mend(text).decode()
    assert "def _print_model(\n    value_number_0,\n" in fixed
    assert "        _print_model(\n            value_number_0,\n" in fixed
    assert all(len(line) <= 88 for line in fixed.splitlines())


def test_configured_line_length() -> None:
    Path("pyproject.toml").write_text("[tool.ruff]\nline-length = 40\n")
    text = body("def forward(self, first, second):", "    print(first, second, 1)", "    return first")
    assert "        _print_model(first, second)" in mend(text).decode()
    longer = text.replace("first", "first_value").replace("second", "second_value")
    assert "        _print_model(\n            first_value, second_value\n        )" in mend(longer).decode()


def line(length: int) -> str:
    return f"x = {'1' * (length - 4)}\n"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        (line(60) * 20, 88),
        (line(60) * 300, 79),
        (line(79) * 300, 79),
        (line(80) * 300, 88),
        (line(100) * 20, 100),
        (line(60) * 20 + line(150), 88),
        (line(88) * 600 + line(110), 88),
        (line(88) * 20 + line(60).rstrip() + f"  # {'about it ' * 6}\n", 88),
        (line(88) * 20 + f"# {'about it ' * 12}\n" + f"x = [\n    '{'a' * 100}'\n]\n", 88),
    ],
)
def test_line_length_that_a_file_keeps_to(text: str, length: int) -> None:
    assert Style(SourceText("module.py", text), ast.parse(text)).length == length


@pytest.mark.parametrize(
    ("name", "content", "length"),
    [
        ("pyproject.toml", "[tool.black]\nline-length = 100\n", 100),
        ("pyproject.toml", "[tool.ruff.lint]\nselect = []\n", 88),
        ("pyproject.toml", "[project]\nname = 'x'\n", 110),
        ("ruff.toml", "line-length = 72\n", 72),
        (".ruff.toml", "indent-width = 2\n", 88),
        ("ruff.toml", "line-length = \n", 110),
    ],
)
def test_line_length_that_is_configured(folder: Path, name: str, content: str, length: int) -> None:
    inner = folder / "pkg"
    inner.mkdir()
    (folder / name).write_text(content)
    text = line(110) * 5
    assert Style(SourceText(str(inner / "module.py"), text), ast.parse(text)).length == length


# -------------------------------------------------------------------- names


def test_names_that_are_taken() -> None:
    text = PLAIN + "\n\ndef _print_model():\n    return _print_model_2\n"
    assert "def _print_model_3(x):" in mend(text).decode()


def test_names_of_several_places() -> None:
    text = body(
        "def forward(self, x):",
        "    print(x)",
        "    print(x)",
        "    return self._help(x)",
        "",
        "def _help(self, x):",
        "    print(x)",
        "    return x",
    )
    fixed = mend(text).decode()
    assert [line for line in fixed.splitlines() if line.startswith("def ")] == [
        "def _print_model(x):",
        "def _print_model_2(x):",
        "def _print_help(x):",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MyHTTPLayer", "my_http_layer"),
        ("Conv2DBlock", "conv2d_block"),
        ("M2M100Decoder", "m2m100_decoder"),
        ("T5Stack", "t5_stack"),
        ("LayerNorm2d", "layer_norm2d"),
        ("_Private", "private"),
        ("plain_name", "plain_name"),
    ],
)
def test_words_of_a_name(name: str, words: str) -> None:
    assert snake_case(name) == words


def test_parameters_do_not_hide_what_the_text_uses() -> None:
    text = body(
        "def forward(self, x):", "    print(self.max, max(self.value, 1), self.print, self.x, x)", "    return x"
    )
    fixed = mend(text).decode()
    assert (
        "def _print_model(max_value, value, print_value, x_2, x):\n"
        "    print(max_value, max(value, 1), print_value, x_2, x)" in fixed
    )


# -------------------------------------------------------------------- the import


IMPORTS = """
import torch|from torch import nn
import graphmend|import torch|from torch import nn

import abc|import os||import torch|from torch import nn
import abc|import os||import graphmend|import torch|from torch import nn

import abc|import einops|from torch import nn
import abc|import einops|import graphmend|from torch import nn

from torch import nn
import graphmend|from torch import nn

'doc'|from __future__ import annotations||from torch import nn
'doc'|from __future__ import annotations||import graphmend|from torch import nn

import os||from torch import nn||from . import other
import os||import graphmend|from torch import nn||from . import other

#!/usr/bin/python|# Licence||import torch  # why|from torch import nn
#!/usr/bin/python|# Licence||import graphmend|import torch  # why|from torch import nn

# Licence|from torch import nn
# Licence|import graphmend|from torch import nn

import aaa|# about nn|from torch import nn
import aaa|import graphmend|# about nn|from torch import nn

import graphmend|from torch import nn
import graphmend|from torch import nn

try:|    from torch import nn|except ImportError:|    nn = None
import graphmend||try:|    from torch import nn|except ImportError:|    nn = None

'doc'|try:|    from torch import nn|except ImportError:|    nn = None
'doc'||import graphmend||try:|    from torch import nn|except ImportError:|    nn = None
"""


@pytest.mark.parametrize("case", IMPORTS.strip().split("\n\n"))
def test_place_of_the_import(case: str) -> None:
    before, after = (f"{part}|".replace("|", "\n") for part in case.split("\n"))
    fixed = mend(before + "\n\n" + PLAIN[PLAIN.index("class") :]).decode()
    assert fixed[: fixed.index("\n\n@")] == after
    compile(fixed, "module.py", "exec")


def test_import_that_is_not_always_made() -> None:
    text = PLAIN.replace("import torch\n", "import torch\n\nif torch.cuda.is_available():\n    import graphmend\n\n", 1)
    fixed = mend(text).decode()
    assert fixed.startswith("import graphmend as _graphmend\nimport torch\n")
    assert "@_graphmend.effect\n" in fixed


def test_import_under_another_name() -> None:
    text = PLAIN.replace("import torch\n", "import graphmend as gm\nimport torch\n")
    assert "@gm.effect\n" in mend(text).decode()


@pytest.mark.parametrize(
    ("statement", "decorator"),
    [
        ("from graphmend import effect", "effect"),
        ("import graphmend.runtime as rt", "rt.effect"),
        ("from graphmend import effect as e", "e"),
    ],
)
def test_bodies_of_effects_are_left_alone(statement: str, decorator: str) -> None:
    text = FIXED.replace("import graphmend\n", f"{statement}\n").replace("graphmend.effect", decorator)
    assert mend(text).decode() == text


def test_name_of_the_import_is_taken() -> None:
    text = PLAIN.replace("\n\nclass", "\n\ndef graphmend():\n    return 1\n\n\nclass", 1)
    fixed = mend(text).decode()
    assert "import graphmend as _graphmend\n" in fixed
    assert "@_graphmend.effect\n" in fixed


def test_vendored_runtime() -> None:
    for name in ("pkg", "pkg/sub"):
        Path(name).mkdir()
        Path(name, "__init__.py").write_text("")
    config = Config(root=str(Path.cwd()), select=("GM301",), runtime=Vendor())
    text = PLAIN.replace("\n\nclass", "\nfrom .zoo import other\n\n\nclass", 1)
    path = Path("pkg/sub/module.py")
    path.write_text(text)
    (fixed,) = engine.run(engine.Request((str(path),), config, fix=True)).fixed
    assert "from torch import nn\n\nfrom .. import _graphmend as graphmend\nfrom .zoo import other\n" in fixed.after
    path.write_text(fixed.after)
    Path("pkg/_graphmend.py").write_text('"""graphmend runtime."""\n\n\ndef effect(function):\n    return function\n')
    assert engine.run(engine.Request((str(path),), config, fix=True)).fixed == ()


# -------------------------------------------------------------------- the place of the function


def test_above_decorators_and_their_comments() -> None:
    text = PLAIN.replace("\n\nclass", "\nN = 1\n# two words\n# about it\n@register\nclass", 1).replace(
        "import torch", "import torch\nfrom r import register"
    )
    fixed = mend(text).decode()
    assert (
        'N = 1\n\n\n@graphmend.effect\ndef _print_model(x):\n    print("x", x)\n\n\n'
        "# two words\n# about it\n@register\nclass" in fixed
    )


def test_class_in_a_condition() -> None:
    lines = PLAIN[PLAIN.index("class") :].splitlines()
    text = (
        PLAIN[: PLAIN.index("class")] + "if torch.cuda.is_available():\n" + "".join(f"    {line}\n" for line in lines)
    )
    fixed = mend(text).decode()
    assert fixed.index("def _print_model") < fixed.index("if torch.cuda")
    compile(fixed, "module.py", "exec")


def test_one_line_function() -> None:
    text = PLAIN[: PLAIN.index("class")] + "@torch.compile\ndef show(x): print(x)\n"
    assert (
        mend(text)
        .decode()
        .endswith(
            "@graphmend.effect\ndef _print_show(x):\n    print(x)\n\n\n@torch.compile\ndef show(x): _print_show(x)\n"
        )
    )
