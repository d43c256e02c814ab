#!/usr/bin/env python3
"""Checks with g++, without code generation, the files that a build with g++ has not compiled yet.

The thread sanitizer's build makes a part of the programs; both compilers must take everything without a warning. What nearly
every test includes is read once, into a precompiled header.

usage: check_gcc.py BUILD_DIR     which holds compile_commands.json
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# It includes what only a build makes.
INCLUDES_GENERATED = "perseus_print_layout"
OF_EVERY_TEST = ["gmock/gmock.h", "gtest/gtest.h", "algorithm", "cmath", "filesystem", "functional", "map", "memory", "optional",
                 "random", "ranges", "set", "span", "string", "variant", "vector", "fmt/format.h"]

OUTPUT = re.compile(r" -o (\S+) -c (\S+)")


def is_compiled(entry: dict) -> bool:
    return (pathlib.Path(entry["directory"]) / OUTPUT.search(entry["command"])[1]).exists()


def is_test(entry: dict) -> bool:
    return "/perseus_" in entry["command"] and "_tests.dir/" in entry["command"]


def precompiled(entry: dict, folder: str) -> str:
    """The header's name, to be included first; a compiler that cannot use what is made of it reads it."""
    header = os.path.join(folder, "of_every_test.h")
    pathlib.Path(header).write_text("".join(f"#include <{name}>\n" for name in OF_EVERY_TEST))
    make = OUTPUT.sub(f" -x c++-header -o {shlex.quote(header)}.gch -c {shlex.quote(header)}", entry["command"])
    subprocess.run(["sh", "-c", make], cwd=entry["directory"], capture_output=True, check=False)
    return header


def read(entry: dict, first: str) -> tuple[bool, str]:
    include = f" -include {shlex.quote(first)}" if is_test(entry) else ""
    command = OUTPUT.sub(rf"{include} -fsyntax-only \2", entry["command"])
    done = subprocess.run(["sh", "-c", command], cwd=entry["directory"], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main() -> int:
    entries = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    left = [entry for entry in entries if not is_compiled(entry) and INCLUDES_GENERATED not in entry["command"]]
    tests = [entry for entry in left if is_test(entry)]
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        first = precompiled(tests[0], folder) if tests else ""
        for ok, output in pool.map(lambda entry: read(entry, first), left):
            failed += not ok
            if not ok:
                print(output)
    print(f"g++: {len(left)} files read, {failed} failed; {len(entries) - len(left)} were compiled before")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
