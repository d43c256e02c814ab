#!/usr/bin/env python3
"""Runs clang-tidy 14 with the checks of .clang-tidy over src and apps; bench only has to compile with clang 14 (the build
with sanitizers compiles all the rest with it).

Where the build compiles several files as one (CMAKE_UNITY_BUILD), so does this: most of the time goes into headers
that they share. A unit that passed is not checked again until a file of it, a header of ours that it includes, or
.clang-tidy changes: BUILD_DIR/tidy_passed records the units that passed.

usage: check_tidy.py [--analyze] BUILD_DIR [FILE...]
  BUILD_DIR holds compile_commands.json; files: all that it names
  --analyze  with clang's path analyzer too (several times slower)
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# These compile only in a build that has made what they include.
INCLUDE_GENERATED = {ROOT / "tests/python/print_layout.cpp"}


@functools.cache
def ours(path: pathlib.Path) -> frozenset[pathlib.Path]:
    """The file and all headers of ours that it includes, directly or not."""
    found = {path}
    for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
        for header in (path.parent / name, ROOT / "src" / name):
            if header.is_file():
                found |= ours(header.resolve())
                break
    return frozenset(found)


def key_of(path: pathlib.Path, checks: list[str]) -> str:
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + " ".join(checks).encode())
    for part in sorted(ours(path)):
        digest.update(str(part).encode() + b"\0" + part.read_bytes())
    return digest.hexdigest()


@functools.cache
def commands(build: pathlib.Path) -> dict[pathlib.Path, dict]:
    """Source or unit of several -> folder and command with which clang checks it without output files."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if not all(is_ours(part, build) for part in parts(path)):
            continue
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if word.startswith("-")) :]
        if "-o" in words:
            del words[words.index("-o") : words.index("-o") + 2]
        words = ["clang++-14", *words, "-fsyntax-only", "-Wno-unknown-warning-option"]
        found[path] = {"words": words, "directory": entry["directory"]}
    return found


def parts(path: pathlib.Path) -> list[pathlib.Path]:
    """The sources that a unit of several includes; a source itself."""
    if not path.name.startswith("unity_"):
        return [path]
    return [pathlib.Path(name) for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)]


def is_ours(path: pathlib.Path, build: pathlib.Path) -> bool:
    """Whether the file is a source; files that the build itself makes are not."""
    return path.is_relative_to(ROOT) and not path.is_relative_to(build) and path not in INCLUDE_GENERATED


def has_all_checks(path: pathlib.Path) -> bool:
    return all(part.relative_to(ROOT).parts[0] in ("src", "apps") for part in parts(path))


def is_bench(path: pathlib.Path) -> bool:
    return parts(path)[0].relative_to(ROOT).parts[0] == "bench"


def tidy(build: pathlib.Path, path: pathlib.Path, checks: list[str]) -> tuple[bool, str]:
    if not has_all_checks(path):
        command = commands(build)[path]
        done = subprocess.run(command["words"], cwd=command["directory"], capture_output=True, text=True)
        return done.returncode == 0, done.stderr
    if parts(path) != [path]:  # such a unit includes .cpp files, as it should
        checks = [",".join([*(checks or ["--checks="]), "-bugprone-suspicious-include"])]
    done = subprocess.run(
        ["clang-tidy-14", "--quiet", "--extra-arg=-Wno-unknown-warning-option", *checks, "-p", str(build), str(path)],
        capture_output=True,
        text=True,
    )
    # stderr only counts the warnings that are not shown, unless it could not run at all.
    return done.returncode == 0, done.stdout or done.stderr


def main() -> int:
    analyze = sys.argv[1] == "--analyze"
    checks = ["--checks=clang-analyzer-core.*,clang-analyzer-cplusplus.*"] if analyze else []
    build, *files = [pathlib.Path(name).resolve() for name in sys.argv[1 + analyze :]]
    files = files or [path for path in sorted(commands(build)) if has_all_checks(path) or is_bench(path)]
    memory = build / "tidy_passed"
    passed = set(memory.read_text().split()) if memory.exists() else set()
    keys = {path: key_of(path, checks) for path in files}
    todo = [path for path in files if keys[path] not in passed]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (ok, output) in zip(todo, pool.map(lambda path: tidy(build, path, checks), todo)):
            failed += not ok
            if not ok:
                print(output)
                del keys[path]
    memory.write_text("\n".join(sorted(passed.union(keys.values()))) + "\n")
    print(f"tidy: {len(files)} files, {len(files) - len(todo)} of them unchanged since they passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
