"""Which files are looked at."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend.config import Config, default_config
from graphmend.configfile import find_config
from graphmend.discover import discover, is_excluded
from graphmend.globs import Globs


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(project: Path, *paths: str) -> None:
    for path in paths:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("", encoding="utf-8")


def config(project: Path) -> Config:
    return default_config(project.as_posix())


def found(project: Path, *paths: str, **changes: object) -> list[str]:
    result = discover(paths or (".",), replace(config(project), **changes))  # type: ignore[arg-type]
    assert not result.errors
    return [file.path for file in result.files]


def test_folders_are_searched_for_python_files(project: Path) -> None:
    make(project, "b.py", "a.py", "src/deep/c.py", "src/notes.txt", "stub.pyi")
    assert found(project) == ["a.py", "b.py", "src/deep/c.py"]


def test_usual_folders_without_own_code_are_left_out(project: Path) -> None:
    make(project, "a.py", ".venv/b.py", "src/build/c.py", "__pycache__/d.py", "node_modules/e.py")
    assert found(project) == ["a.py"]


def test_a_named_file_is_taken_whatever_its_suffix_and_folder(project: Path) -> None:
    make(project, "build/script", "a.py")
    (file,) = discover(["build/script"], config(project)).files
    assert (file.path, file.named) == ("build/script", True)


def test_a_named_folder_is_searched_even_if_its_name_is_excluded(project: Path) -> None:
    make(project, "site-packages/model/a.py", "site-packages/model/build/b.py")
    assert found(project, "site-packages") == ["site-packages/model/a.py"]


def test_force_exclude_holds_for_named_paths(project: Path) -> None:
    make(project, "build/a.py", "src/b.py")
    paths = ("build/a.py", "build", "src/b.py")
    assert found(project, *paths, force_exclude=True) == ["src/b.py"]


def test_own_patterns_replace_or_extend_the_default(project: Path) -> None:
    make(project, "src/a.py", "src/gen/b.py", "build/c.py", "gen/d.py")
    root = project.as_posix()
    assert found(project, exclude=(Globs(root, ("src/gen",)),)) == ["build/c.py", "gen/d.py", "src/a.py"]
    both = (*config(project).excluded, Globs(root, ("/gen/", "src/a*")))
    assert found(project, exclude=both) == ["src/gen/b.py"]


def test_a_file_that_is_named_and_found_counts_once_and_as_named(project: Path) -> None:
    make(project, "src/a.py")
    (file,) = discover(["src", "./src/a.py", "src/../src"], config(project)).files
    assert (file.path, file.named) == ("src/a.py", True)


def test_paths_are_shown_relative_to_the_working_directory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(project, "src/a.py", "sub/b.py")
    monkeypatch.chdir(project / "sub")
    assert found(project, "../src", str(project / "sub" / "b.py")) == ["../src/a.py", "b.py"]


def test_a_missing_path_is_an_error_and_the_rest_goes_on(project: Path) -> None:
    make(project, "a.py")
    result = discover(["nowhere.py", "a.py", "bad\0name"], config(project))
    assert [file.path for file in result.files] == ["a.py"]
    assert [error.path for error in result.errors] == ["nowhere.py", "'bad\\x00name'"]
    assert "No such file" in result.errors[0].message


def test_a_folder_that_cannot_be_read_is_an_error_and_the_rest_goes_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(project, "a.py", "secret/b.py", "z/c.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = discover(["."], config(project))
    assert [file.path for file in result.files] == ["a.py", "z/c.py"]
    (error,) = result.errors
    assert (error.path, error.message) == ("secret", "cannot read the folder: Permission denied")


def test_a_named_folder_that_cannot_be_entered_is_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(project, "a.py", "secret/b.py")
    stat, scandir = os.stat, os.scandir

    def refuse_inside(path: str, **arguments: object) -> object:
        if "secret/" in os.fspath(path):
            raise PermissionError(13, "Permission denied")
        return stat(path, **arguments)  # type: ignore[arg-type]

    def refuse(path: str) -> object:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "stat", refuse_inside)
    monkeypatch.setattr(os, "scandir", refuse)
    assert find_config(["secret"]) is None
    result = discover(["secret", "a.py"], config(project))
    assert [file.path for file in result.files] == ["a.py"]
    assert [error.message for error in result.errors] == ["cannot read the folder: Permission denied"]


def test_links_do_not_lead_round_in_circles_or_to_the_same_file_twice(project: Path) -> None:
    make(project, "src/a.py", "other/c.py")
    (project / "src" / "loop").symlink_to(project / "src")
    (project / "src" / "twin.py").symlink_to(project / "src" / "a.py")
    (project / "src" / "broken.py").symlink_to(project / "gone.py")
    (project / "src" / "self.py").symlink_to(project / "src" / "self.py")
    (project / "src" / "alias.py").symlink_to(project / "other" / "c.py")
    assert found(project, "src") == ["src/a.py", "src/alias.py"]


def test_a_named_link_to_itself_is_an_error(project: Path) -> None:
    (project / "self.py").symlink_to(project / "self.py")
    result = discover(["self.py"], config(project))
    assert not result.files
    assert result.errors[0].path == "self.py"


def test_a_folder_named_like_a_file_is_searched(project: Path) -> None:
    make(project, "pkg.py/a.py")
    assert found(project) == ["pkg.py/a.py"]


class TestGitignore:
    @pytest.fixture(autouse=True)
    def repository(self, project: Path) -> None:
        subprocess.run(["git", "init", "-q", project], check=True)

    def expected(self, project: Path) -> list[str]:
        listed = subprocess.run(
            ["git", "-c", "core.excludesFile=", "ls-files", "--others", "--exclude-standard", "-z"],
            cwd=project,
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout.split("\0")
        return sorted(path for path in listed if path.endswith(".py"))

    def test_nested_files_and_negation_mean_what_git_makes_of_them(self, project: Path) -> None:
        make(project, "a.py", "b.py", "gen/a.py", "gen/keep.py", "src/a.py", "src/gen/x.py", "src/old/y.py", "tmp/z.py")
        (project / ".gitignore").write_text("/gen/*\n!/gen/keep.py\nold/\ntmp\n*_a.py\nb.py\n", encoding="utf-8")
        (project / "src" / ".gitignore").write_text("!old/\n/gen\n", encoding="utf-8")
        (project / ".git" / "info" / "exclude").write_text("src/a.py\n", encoding="utf-8")
        assert found(project, exclude=()) == self.expected(project) == ["a.py", "gen/keep.py", "src/old/y.py"]

    def test_files_around_a_named_folder_count(self, project: Path) -> None:
        make(project, "src/pkg/a.py", "src/pkg/secret.py")
        (project / ".gitignore").write_text("secret.py\n", encoding="utf-8")
        assert found(project, "src/pkg") == ["src/pkg/a.py"]

    def test_a_repository_inside_another_begins_anew(self, project: Path) -> None:
        make(project, "inner/a.py", "a.py")
        subprocess.run(["git", "init", "-q", project / "inner"], check=True)
        (project / ".gitignore").write_text("a.py\n", encoding="utf-8")
        assert found(project) == ["inner/a.py"]

    def test_a_named_file_is_taken_although_git_ignores_it(self, project: Path) -> None:
        make(project, "a.py")
        (project / ".gitignore").write_text("*\n", encoding="utf-8")
        assert found(project, "a.py", force_exclude=True) == ["a.py"]

    def test_it_can_be_turned_off(self, project: Path) -> None:
        make(project, "a.py")
        (project / ".gitignore").write_text("*\n", encoding="utf-8")
        assert found(project) == []
        assert found(project, respect_gitignore=False) == ["a.py"]


def test_exclusion_of_a_single_path(project: Path) -> None:
    assert is_excluded("src/build/a.py", config(project))
    assert not is_excluded("src/a.py", config(project))
