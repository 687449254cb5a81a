"""Path patterns mean what git makes of them: git itself is the oracle."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graphmend.globs import Globs, read_lines

PATHS = ("a", "b.py", "a/b", "a/b.py", "ab/c", "a/x/b", "a/x/y/b", "x/a/b.py", "-", "]", "a b", "#a", "!a", "a/.b", "A")


def ignored_by_git(folder: Path, lines: str, paths: tuple[str, ...]) -> set[str]:
    (folder / ".gitignore").write_text(lines, encoding="utf-8", newline="")
    result = subprocess.run(
        [
            "git",
            "-c",
            "core.quotePath=false",
            "check-ignore",
            "--no-index",
            "--verbose",
            "--non-matching",
            "-z",
            "--stdin",
        ],
        cwd=folder,
        input="\0".join(paths),
        capture_output=True,
        encoding="utf-8",
    )
    fields = result.stdout.split("\0")
    matches = zip(fields[2::4], fields[3::4], strict=False)
    return {path for pattern, path in matches if pattern and not pattern.startswith("!")}


def ignored_by_us(folder: Path, lines: str, paths: tuple[str, ...]) -> set[str]:
    globs = Globs(folder.as_posix(), read_lines(lines))
    result = set()
    for path in paths:
        parts = path.split("/")
        prefixes = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        decisions = [globs.decide(f"{folder.as_posix()}/{prefix}", folder=prefix != path) for prefix in prefixes]
        if True in decisions[:-1] or decisions[-1]:
            result.add(path)
    return result


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


@pytest.mark.parametrize(
    "lines",
    [
        "a",
        "/a",
        "a/",
        "*.py",
        "a/*.py",
        "a/**/b",
        "**/b",
        "a/**",
        "**",
        "*\n!a/",
        "*\n!b.py",
        "a/*\n!a/b.py",
        "a/\n!a/b.py",
        "[ab].py",
        "[!a]*",
        "[^a]*",
        "[a-c]",
        "[]-]",
        "[[:alpha:]]",
        "[[:nope:]]",
        "[a",
        "a\\",
        "\\#a",
        "#a",
        "\\!a",
        "a\\ b",
        "a b   ",
        "a\\ ",
        "b.py\r\na",
        "\ufeffa",
        "?",
        "a?b",
        "***/b",
        "a**b",
        "/**/b",
        "a/b/",
        "!",
        "/",
        "\n\n   \n",
        ".*",
    ],
)
def test_a_pattern_means_what_git_makes_of_it(repository: Path, lines: str) -> None:
    assert ignored_by_us(repository, lines, PATHS) == ignored_by_git(repository, lines, PATHS)


pattern = st.text(alphabet="ab*?/![]-^\\ .c#", min_size=1, max_size=7)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(pattern, min_size=1, max_size=3).map("\n".join))
@example(lines="[a-]")
@example(lines="[b-a]")
@example(lines="a//b")
def test_any_pattern_means_what_git_makes_of_it(repository: Path, lines: str) -> None:
    assert ignored_by_us(repository, lines, PATHS) == ignored_by_git(repository, lines, PATHS)


def test_a_path_outside_the_root_is_not_decided() -> None:
    globs = Globs("/project", ("*",))
    assert globs.decide("/elsewhere/a.py", folder=False) is None
    assert globs.decide("/project", folder=True) is None
    assert globs.decide("/project2/a.py", folder=False) is None


def test_a_file_in_an_excluded_folder_is_taken_with_its_parents() -> None:
    globs = Globs("/project", ("build",))
    assert globs.decide("/project/build/a.py", folder=False) is None
    assert globs.takes_with_parents("/project/build/a.py")
    assert not globs.takes_with_parents("/project/src/a.py")


def test_a_question_mark_stands_for_one_character_where_git_counts_bytes() -> None:
    globs = Globs("/project", ("?",))
    assert globs.decide("/project/é", folder=False) is True
