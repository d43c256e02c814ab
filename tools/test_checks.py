#!/usr/bin/env python3
"""Tests that each check fails: plants a violation in a copy and expects the check to report its file and line.

A check that has never failed may not work.   usage: test_checks.py layers|format|comments|tidy|gcc|links|snippets|web_bundle|commits
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parent
ROOT = TOOLS.parent


def run(*command) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def expect(what: str, result: tuple[int, str], fails: bool, says: str = "") -> None:
    code, output = result
    if (code != 0) != fails or says not in output:
        sys.exit(f"{what}: expected {'a failure' if fails else 'success'} that says '{says}', got {code}:\n{output}")
    print(f"{what}: as expected")


def expect_skipped(what: str, result: tuple[int, str]) -> None:
    if result[0] != 77 or "skipped: " not in result[1]:
        sys.exit(f"{what}: expected 77 and a reason, got {result[0]}:\n{result[1]}")
    print(f"{what}: skipped as expected")


def copy_sources(folder: str) -> pathlib.Path:
    copy = pathlib.Path(folder)
    for name in ["CMakeLists.txt", ".clang-format"]:
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src")
    return copy


def test_layers() -> None:
    check = TOOLS / "check_layers.py"
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_sources(folder)
        expect("clean copy", run(check, copy), fails=False)
        for planted, line in [
            ("src/planning/graph/planted.h", '#include "planning/model/profile.h"'),  # a module that it does not list
            ("src/base/planted.cpp", '#include "apps/perseus/command_line/command.h"'),  # modules do not know the programs
            ("src/planning/model/planted.cpp", '#include "../../io/formats/json.h"'),  # nor by a relative path
        ]:
            (copy / planted).write_text(f"// planted\n{line}\n")
            expect(line, run(check, copy), fails=True, says=f"{planted}:2: {line}")
            (copy / planted).unlink()

        def declares(module: str, name: str) -> str:
            return f"namespace perseus::{module} {{\n\nstruct {name} {{}};\n\n}}  // namespace perseus::{module}\n"

        first, second = copy / "src/planning/model/planted.h", copy / "src/io/formats/planted_too.h"
        first.write_text(declares("model", "Planted"))
        second.write_text(declares("formats", "Planted"))
        expect("two types of one name", run(check, copy), fails=True,
               says="src/planning/model/planted.h:3: type Planted is another type in src/io/formats/planted_too.h:3")
        second.unlink()
        source = second.with_suffix(".cpp")
        source.write_text(declares("formats", "Planted"))
        expect("a type of a source file named as one of a header", run(check, copy), fails=True,
               says="src/io/formats/planted_too.cpp:3: type Planted is another type in src/planning/model/planted.h:3")
        source.unlink()
        second.write_text(declares("formats", "PlantedToo"))
        expect("two names", run(check, copy), fails=False)
        second.write_text(declares("model", "PlantedToo"))
        expect("a namespace of another module", run(check, copy), fails=True,
               says="src/io/formats/planted_too.h:1: namespace perseus::model: code of 'io/formats' is in perseus::formats")
        second.rename(copy / "src/io/formats/planted.h")
        expect("two headers of one name", run(check, copy), fails=True, says="has the same file name")
        first.unlink()
        (copy / "src/io/formats/planted.h").unlink()
        (copy / "src/attic").mkdir()
        (copy / "src/attic/planted.h").write_text("\n")
        expect("an undeclared module", run(check, copy), fails=True, says="'attic' is not declared")
        (copy / "src/attic/planted.h").unlink()
        cmake = copy / "CMakeLists.txt"
        cmake.write_text(cmake.read_text().replace("perseus_module(planning/graph base)", "perseus_module(planning/graph model base)"))
        expect("an arrow back up", run(check, copy), fails=True, says="lists 'model', which is not declared above it")


def test_format() -> None:
    check = TOOLS / "check_format.sh"
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_sources(folder)
        expect("clean copy", run(check, copy), fails=False)
        (copy / "src/base/planted.h").write_text("int  planted ;\n")
        expect("bad spaces", run(check, copy), fails=True, says="src/base/planted.h:1:")


def test_gcc() -> None:
    check = TOOLS / "check_gcc.py"
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        source = build / "planted.cpp"
        command = f"g++ -std=c++20 -Wall -Werror -o planted.o -c {source}"
        entry = {"directory": folder, "file": str(source), "command": command}
        (build / "compile_commands.json").write_text(json.dumps([entry]))
        source.write_text("int f(int n) { return n; }\n")
        expect("clean file", run(check, build), fails=False, says="1 files read, 0 failed; 0 were")
        source.write_text("int f(int n) { int unused; return n; }\n")
        expect("a warning", run(check, build), fails=True, says="planted.cpp:1:20: error: unused variable")
        (build / "planted.o").write_text("")
        expect("a file that was compiled", run(check, build), fails=False, says="0 files read, 0 failed; 1 were")


def test_tidy() -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        shutil.copytree(TOOLS, copy / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / ".clang-tidy", copy)
        source = copy / "src/base/planted.cpp"
        source.parent.mkdir(parents=True)
        command = {"directory": folder, "file": str(source), "command": f"c++ -std=c++20 -c {source}"}
        build = copy / "build"
        build.mkdir()
        (build / "compile_commands.json").write_text(json.dumps([command]))
        check = copy / "tools/check_tidy.py"
        source.write_text("#include <string>\nstd::size_t f(const std::string& s) { return s.size(); }\n")
        expect("clean file", run(check, build), fails=False)
        source.write_text(
            "#include <string>\n#include <utility>\nstd::string g(std::string s) {\n"
            "  std::string t = std::move(s);\n  return t + s;\n}\n"
        )
        expect("use after move", run(check, build), fails=True, says="planted.cpp:5:")


def test_comments() -> None:
    check = TOOLS / "check_comments.py"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "src").mkdir()
        for number, header, wrong in [
            (0, ["// Input:   a number, as in the cost of a plan: small.", "// Errors:  none."], ""),
            (2, ["// Input:   a number that is", "// small. Errors:  none."], "two keys on one line"),
            (2, ["// Input:   " + 95 * "x", "// of", "//          many."], "falls out of the paragraph around it"),
            (0, ["// Input:   " + 20 * "x", "//          of", "//          many."], ""),
        ]:
            (root / "src/planted.h").write_text("\n".join(header) + "\n#pragma once\n")
            expect(header[-1], run(check, root), fails=bool(wrong), says=f"src/planted.h:{number}: {wrong}" if wrong else "")


def test_snippets() -> None:
    check = TOOLS / "check_snippets.py"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        shutil.copytree(ROOT / "include", root / "include")
        page = root / "docs/page.md"
        for given, language, text, line in [
            ("int rank;", "cpp", "#include <perseus/perseus.hpp>\nperseus::api::Options options;\noptions.rank = rank;", 0),
            ("int rank;", "cpp", "#include <perseus/perseus.hpp>\nperseus::Options options;", 3),
            ("int rank;", "cpp", "rank = node;", 3),
            ("int rank;", "c", "rank = 1;", 0),
            ("", "python", "for rank in ranks:\n    run(rank)", 0),
            ("", "python", "for rank in ranks\n    run(rank)", 3),
        ]:
            above = f"<!-- given: {given} -->\n" if given else ""
            page.write_text(f"# Page\n\n{above}```{language}\n{text}\n```\n")
            expect(text, run(check, "c++", root), fails=line > 0, says=f"docs/page.md:{line}: " if line else "")


def test_links() -> None:
    check = TOOLS / "check_links.py"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "docs/page.md").write_text("# Page\n\n## Part of `it`, too\n\n```\n## no heading\n[none](none.md)\n```\n")
        first = root / "README.md"
        for link, wrong in [
            ("docs/page.md#part-of-it-too", ""), ("https://example.org/none", ""),
            ("docs/none.md", "does not exist"), ("../none", "is outside of the repository"),
            ("docs/page.md#no-heading", "names no heading of docs/page.md"), ("#none", "names no heading of README.md"),
        ]:
            first.write_text(f"# First\n\nA [page]({link}).\n")
            expect(link, run(check, root), fails=bool(wrong), says=f"README.md:3: the link '{link}' {wrong}" if wrong else "")
        page, shown = root / "index.html", '<h1 id="top"><a href="#top">Top</a></h1>'
        for text, wrong in [
            ('<a href="https://example.org">', ""),
            ('<a href="#none">', "the link '#none' names no heading"),
            ('<script src="https://example.org/x.js">', "the link 'https://example.org/x.js' is loaded from another host"),
            ('<link rel="stylesheet" href="//example.org/x.css">', "the link '//example.org/x.css' is loaded from another host"),
            ('<img src="none.png">', "the link 'none.png' does not exist"),
        ]:
            page.write_text(shown + text)
            expect(text, run(check, "--site", root), fails=bool(wrong), says=f"index.html:1: {wrong}" if wrong else "")


def test_web_bundle() -> None:
    check = TOOLS / "check_web_bundle.sh"
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        shutil.copytree(ROOT / "web", copy / "web", ignore=shutil.ignore_patterns("node_modules"))
        lock = copy / "web/package-lock.json"
        text = lock.read_text()
        lock.write_text(text.replace('"version"', '"resolved": "somewhere", "version"', 1))
        expect("lock file with addresses", run(check, copy), fails=True, says="names where packages come from")
        lock.write_text(text)
        clean = run(check, copy)
        if clean[0] == 77:
            print(clean[1])
            sys.exit(77)
        expect("clean copy", clean, fails=False)
        source = copy / "web/src/format.js"
        text = source.read_text()
        source.write_text(text.replace("'fixed clock'", "'planted'"))
        expect("source changed, not built", run(check, copy), fails=True, says="report.js differ")
        source.write_text(text)
        (copy / "web/dist/LICENSES").write_text("none\n")
        expect("licenses changed", run(check, copy), fails=True, says="LICENSES differ")


def test_commits() -> None:
    check = TOOLS / "check_commits.py"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "repository"

        def git(*arguments: str) -> None:
            subprocess.run(["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false",
                            *arguments], check=True, capture_output=True)

        (root / "src/planning/planner").mkdir(parents=True)
        (root / "src/planning/planner/exact.cpp").write_text("\n")
        (root / "README.md").write_text("\n")
        expect_skipped("no history", run(check, "HEAD", root))
        git("init")
        git("add", ".")
        git("commit", "-m", "anything, as the first commit")
        git("tag", "first")
        expect_skipped("a history without that commit", run(check, "none", root))
        for subject, wrong in [
            ("planner: price slack in both sweeps", ""), ("planning/planner, README: speed up the sweeps", ""), ("all: rename the rounding", ""),
            ("planner, tests: price slack", "area 'tests'; allowed: a folder"), ("price slack", "no 'area: ' before the summary"),
            ("planner: prices slack", "begins with 'prices'; allowed: a verb in the imperative"), ("planner: priced slack", "begins with 'priced'"),
            ("planner: the price of slack", "begins with 'the'"), ("planner: price slack.", "a period at the end"),
            ("planner: price " + 58 * "x", "73 characters; allowed: 72"),
        ]:
            git("commit", "--allow-empty", "-m", subject)
            expect(subject, run(check, "first", root), fails=bool(wrong), says=f"'{subject}': " if wrong else "1 commits, 0 violations")
            expect(subject, run(check, "first", root), fails=bool(wrong), says=wrong)
            git("reset", "--soft", "HEAD~")


if __name__ == "__main__":
    tests = {"layers": test_layers, "format": test_format, "tidy": test_tidy, "gcc": test_gcc, "links": test_links,
             "web_bundle": test_web_bundle, "comments": test_comments, "snippets": test_snippets, "commits": test_commits}
    tests[sys.argv[1]]()
