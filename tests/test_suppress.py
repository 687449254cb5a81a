"""Comments that silence findings."""

from __future__ import annotations

import pytest

from graphmend.suppress import find_suppressions


@pytest.mark.parametrize(
    ("comment", "silenced"),
    [
        ("# noqa", True),
        ("#noqa", True),
        ("# NOQA", True),
        ("# noqa: GM301", True),
        ("# noqa:GM301", True),
        ("# noqa: gm301", True),
        ("# noqa: E501,GM301", True),
        ("# noqa: E501, GM301", True),
        ("# noqa: E501 GM301", True),
        ("# noqa: GM3", True),
        ("# noqa: GM", True),
        ("# why not  # noqa: GM301", True),
        ("# noqa: GM301 it is only printed once", True),
        ("# noqa: E501", False),
        ("# noqa: GM302", False),
        ("# noqa: GM3011", False),
        ("# noqaX", False),
        ("# type: ignore", False),
        ("# flake8: noqa", False),
    ],
)
def test_a_comment_silences_by_code_or_its_beginning(comment: str, silenced: bool) -> None:
    found = find_suppressions(f"x = 1\nprint(x)  {comment}\nprint(x)\n")
    assert found.silences("GM301", 2, 2) is silenced
    assert not found.silences("GM301", 1, 1)
    assert not found.silences("GM301", 3, 3)


def test_text_in_a_string_is_no_comment() -> None:
    found = find_suppressions('print("# noqa")\nx = """\n# noqa\n"""\n')
    assert not any(found.silences("GM301", line, line) for line in range(1, 5))


def test_the_first_and_the_last_line_of_a_range_count() -> None:
    text = "print(  # noqa: GM301\n    x,\n    y,\n)  # noqa: GM302\n"
    found = find_suppressions(text)
    assert found.silences("GM301", 1, 4)
    assert found.silences("GM302", 1, 4)
    assert not found.silences("GM301", 2, 3)


def test_a_comment_behind_a_long_string_or_statement_counts_for_its_first_line() -> None:
    found = find_suppressions('print("""\nlong\n""")  # noqa: GM301\nif a and \\\n    b:  # noqa: GM101\n    pass\n')
    assert found.silences("GM301", 1, 1)
    assert found.silences("GM101", 4, 4)
    assert not found.silences("GM301", 4, 5)


@pytest.mark.parametrize("comment", ["# graphmend: noqa", "# graphmend:noqa", "#graphmend: NOQA"])
def test_a_comment_can_silence_a_whole_file(comment: str) -> None:
    found = find_suppressions(f"import torch\n{comment}\nprint()\n")
    assert found.silences("GM301", 3, 3)
    assert found.silences("GM101", 1, 1)


def test_behind_code_such_a_comment_silences_its_line() -> None:
    found = find_suppressions("x = 1  # graphmend: noqa: GM301\ny = 2\n")
    assert found.whole_file == ()
    assert found.silences("GM301", 1, 1)
    assert not found.silences("GM301", 2, 2)


def test_a_comment_can_silence_some_rules_in_a_whole_file() -> None:
    found = find_suppressions("# graphmend: noqa: GM3, GM201\nprint()\n")
    assert found.silences("GM301", 2, 2)
    assert found.silences("GM201", 2, 2)
    assert not found.silences("GM101", 2, 2)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_the_parser_counts_them(newline: str) -> None:
    found = find_suppressions(newline.join(["x = 1", "print(x)  # noqa", "print(x)", ""]))
    assert [line for line in range(1, 5) if found.silences("GM301", line, line)] == [2]


def test_text_that_cannot_be_tokenized_is_read_up_to_there() -> None:
    found = find_suppressions("print(x)  # noqa\ny = (\n")
    assert found.silences("GM301", 1, 1)
