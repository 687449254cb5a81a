"""The written text keeps the file's own ways: indentation, newlines, quotes, comments, encodings."""

from __future__ import annotations

from pathlib import Path

import branch_harness as harness
import pytest

HEAD = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"


def mended(tmp_path: Path, text: str) -> str:
    after, report = harness.mended(tmp_path, {"module.py": text})
    assert report.errors == ()
    compile(after["module.py"], "module.py", "exec")
    return after["module.py"]


def body(text: str) -> str:
    """The text behind the class line."""
    return text.partition("(nn.Module):\n")[2]


def test_tabs(tmp_path: Path) -> None:
    text = HEAD + "\tdef forward(self, x):\n\t\tif x.sum() > 0:\n\t\t\ty = 2.0\n\t\t\tx = x * y\n\t\treturn x\n"
    assert body(mended(tmp_path, text)) == (
        "\tdef forward(self, x):\n"
        "\t\tdef if_true():\n"
        "\t\t\ty = 2.0\n"
        "\t\t\treturn x * y\n"
        "\n"
        '\t\tx = graphmend.select(x.sum() > 0, if_true, lambda: x, grad="where")\n'
        "\t\treturn x\n"
    )


def test_tabs_inside_a_static_part(tmp_path: Path) -> None:
    text = HEAD + (
        "\tdef forward(self, x):\n\t\tif self.training and x.sum() > 0:\n"
        "\t\t\ty = 2.0  # two\n\t\t\tx = x * y\n\t\treturn x\n"
    )
    assert body(mended(tmp_path, text)) == (
        "\tdef forward(self, x):\n"
        "\t\tif self.training:\n"
        "\n"
        "\t\t\tdef if_true():\n"
        "\t\t\t\ty = 2.0  # two\n"
        "\t\t\t\treturn x * y\n"
        "\n"
        '\t\t\tx = graphmend.select(x.sum() > 0, if_true, lambda: x, grad="where")\n'
        "\t\treturn x\n"
    )


def test_carriage_returns(tmp_path: Path) -> None:
    text = (
        HEAD
        + "    def forward(self, x):\n        if x.sum() > 0:\n            y = 2.0\n            x = x * y\n"
        + "        return x\n"
    )
    after = mended(tmp_path, text.replace("\n", "\r\n"))
    assert after.replace("\r\n", "\n").count("\r") == 0
    assert after.count("\n") == after.count("\r\n")
    assert "        def if_true():\r\n            y = 2.0\r\n            return x * y\r\n\r\n" in after


def test_two_spaces_and_single_quotes(tmp_path: Path) -> None:
    text = HEAD + (
        "  def forward(self, x):\n    if x.sum() > 0:\n      y = {'a': 2.0}\n      x = x * y['a']\n    return x\n"
    )
    assert "    def if_true():\n      y = {'a': 2.0}\n      return x * y['a']\n" in mended(tmp_path, text)


def test_a_string_over_lines_keeps_its_characters(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, x):\n"
        "        if self.training and x.sum() > 0:\n"
        '            note = """two\n'
        "  lines\n"
        '            """\n'
        "            x = x * float(len(note))\n"
        "        return x\n"
    )
    assert (
        "            def if_true():\n"
        '                note = """two\n'
        "  lines\n"
        '            """\n'
        "                return x * float(len(note))\n"
    ) in mended(tmp_path, text)


def test_a_branch_on_one_line(tmp_path: Path) -> None:
    text = (
        HEAD
        + "    def forward(self, x):\n        if x.sum() > 0: x = x * 2.0\n        else: x = -x\n        return x\n"
    )
    expected = '        x = graphmend.select(x.sum() > 0, lambda: x * 2.0, lambda: -x, grad="where")\n'
    assert expected in mended(tmp_path, text)


def test_two_statements_on_one_line(tmp_path: Path) -> None:
    text = HEAD + "    def forward(self, x):\n        if x.sum() > 0: y = 2.0; x = x * y\n        return x\n"
    assert (
        "        def if_true():\n            y = 2.0\n            return x * y\n\n        x = graphmend.select("
    ) in mended(tmp_path, text)


def test_statements_around_it_on_its_line(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, x):\n        a = 1.0; y = x * a if x.sum() > 0 else -x; b = 2.0\n        return y * b\n"
    )
    expected = '        a = 1.0; y = graphmend.select(x.sum() > 0, lambda: x * a, lambda: -x, grad="where"); b = 2.0\n'
    assert expected in mended(tmp_path, text)


def test_the_last_part_of_a_chain_with_a_static_part(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, x):\n"
        "        if x.shape[0] > 9:\n"
        "            x = x + 1\n"
        "        # otherwise\n"
        "        elif self.training and x.sum() > 0:  # sum\n"
        "            x = x * 2.0\n"
        "        return x\n"
    )
    assert body(mended(tmp_path, text)) == (
        "    def forward(self, x):\n"
        "        if x.shape[0] > 9:\n"
        "            x = x + 1\n"
        "        # otherwise\n"
        "        else:\n"
        "            # sum\n"
        "            if self.training:\n"
        '                x = graphmend.select(x.sum() > 0, lambda: x * 2.0, lambda: x, grad="where")\n'
        "        return x\n"
    )


def test_comments_inside_an_expression_over_lines(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, x):\n"
        "        if x.sum() > 0:\n"
        "            x = (\n"
        "                x  # the input\n"
        "                * 2.0  # twice\n"
        "            )\n"
        "        return x\n"
    )
    assert body(mended(tmp_path, text)) == (
        "    def forward(self, x):\n"
        "        x = graphmend.select(\n"
        "            x.sum() > 0,\n"
        "            lambda: (\n"
        "                x  # the input\n"
        "                * 2.0  # twice\n"
        "            ),\n"
        "            lambda: x,\n"
        '            grad="where",\n'
        "        )\n"
        "        return x\n"
    )


def test_characters_of_several_bytes(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, größe):\n"
        '        note = "äöü"; y = größe * float(len(note)) if größe.sum() > 0 else -größe  # ✓\n'
        "        return y\n"
    )
    assert (
        '        note = "äöü"; y = graphmend.select(\n'
        '            größe.sum() > 0, lambda: größe * float(len(note)), lambda: -größe, grad="cond"\n'
        "        )  # ✓\n"
    ) in mended(tmp_path, text)


def test_names_that_are_taken(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, x):\n"
        "        if_true = 2.0\n"
        "        if x.sum() > 0:\n"
        "            y = if_true\n"
        "            x = x * y\n"
        "        return x\n"
    )
    after = mended(tmp_path, text)
    assert "def if_true_2():" in after
    assert "x.sum() > 0, if_true_2, lambda: x" in after


def test_the_runtime_under_another_name(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n\ngraphmend = 3\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x):\n        if x.sum() > 0:\n            x = x * graphmend\n        return x\n"
    )
    after = mended(tmp_path, text)
    assert "import graphmend as _graphmend\n" in after
    assert "_graphmend.select(x.sum() > 0, lambda: x * graphmend, lambda: x" in after


@pytest.mark.parametrize("torch_name", ["th", "T"])
def test_torch_under_another_name(tmp_path: Path, torch_name: str) -> None:
    text = (
        f"import torch as {torch_name}\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x):\n"
        f"        if {torch_name}.isinf(x).any() or {torch_name}.isnan(x).any():\n"
        "            x = x * 0.5\n        return x\n"
    )
    assert f"{torch_name}.logical_or({torch_name}.isinf(x).any(), {torch_name}.isnan(x).any())" in mended(
        tmp_path, text
    )


def test_torch_hidden_by_a_local_name(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, x, torch=2.0):\n"
        "        if x.isinf().any() or x.isnan().any():\n"
        "            x = x * torch\n"
        "        return x\n"
    )
    assert "x.isinf().any().logical_or(x.isnan().any())" in mended(tmp_path, text)


def test_the_same_twice_gives_the_same(tmp_path: Path) -> None:
    text = HEAD + (
        "    def forward(self, x):\n"
        "        if x.sum() > 0:\n            y = 2.0\n            x = x * y\n"
        "        if x.sum() > 1:\n            y = 3.0\n            x = x * y\n"
        "        return x\n"
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert mended(tmp_path / "a", text) == mended(tmp_path / "b", text)
