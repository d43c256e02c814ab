#!/usr/bin/env python3
"""Prints figures of the code as a Markdown table: lines, long functions and files, modules and their
arrows, type names that occur twice.

Counts src/, apps/ and include/, and the last row tests/ and bench/; a function is long above 60 lines, a file above 450. Needs universal-ctags (Debian).

usage: code_figures.py [--list]    --list: also names the long functions and files
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_layers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONG_FUNCTION, LONG_FILE = 60, 450


def sources(*folders: str) -> list[pathlib.Path]:
    return [p for f in folders for p in sorted((ROOT / f).rglob("*")) if p.suffix in {".h", ".hpp", ".cpp"}]


def lines(files: list[pathlib.Path]) -> int:
    return sum(len(file.read_text().splitlines()) for file in files)


def long_functions(files: list[pathlib.Path]) -> list[tuple[int, str]]:
    out = subprocess.run(
        ["ctags", "--output-format=json", "--fields=+ne", "--languages=C++", "--c++-kinds=f", "-f", "-", *map(str, files)],
        check=True, capture_output=True, text=True,
    ).stdout
    found = []
    for tag in map(json.loads, out.splitlines()):
        length = tag.get("end", tag["line"]) - tag["line"] + 1
        if length > LONG_FUNCTION:
            found.append((length, f"{pathlib.Path(tag['path']).relative_to(ROOT)}:{tag['line']} {tag['name']}"))
    return sorted(found, reverse=True)


def main() -> int:
    if not shutil.which("ctags"):
        print("code_figures.py: ctags is missing: apt-get install universal-ctags", file=sys.stderr)
        return 69
    code, tests = sources("src", "apps", "include"), sources("tests")
    modules = check_layers.declared_modules(ROOT / "CMakeLists.txt")
    groups = collections.Counter(folder.partition("/")[0] for folder in modules)
    types = collections.Counter(name for file in code if file.suffix != ".cpp" for name, _ in check_layers.types_of(file))
    files = [(len(f.read_text().splitlines()), str(f.relative_to(ROOT))) for f in code]
    long_files = sorted((f for f in files if f[0] > LONG_FILE), reverse=True)
    functions = long_functions(code)
    beside = [*tests, *sources("bench")]
    test_functions = long_functions(beside)
    long_test_files = sorted(((n, str(f.relative_to(ROOT))) for f in beside if (n := lines([f])) > LONG_FILE), reverse=True)
    back_up = sum(1 for _ in check_layers.violations_of_order(modules))
    comments = sum(bool(re.match(r"\s*//", line)) for file in code for line in file.read_text().splitlines())
    rows = [
        ("lines of src, apps and include", f"{lines(code)}, of them {comments} of comments"),
        ("lines of tests (C++)", str(lines(tests))),
        ("groups of modules; modules; arrows between modules",
         f"{len(groups)}; {len(modules)}; {sum(map(len, modules.values()))}"),
        ("arrows back up", str(back_up)),
        ("type names that occur twice in headers", str(sum(n > 1 for n in types.values()))),
        (f"functions over {LONG_FUNCTION} lines", f"{len(functions)}" + (f", longest {functions[0][0]}" if functions else "")),
        (f"files over {LONG_FILE} lines", f"{len(long_files)}" + (f", longest {long_files[0][0]}" if long_files else "")),
        ("in tests and bench: functions; files that are longer", f"{len(test_functions)}; {len(long_test_files)}"),
    ]
    print("| figure | value |\n| --- | --- |")
    for name, value in rows:
        print(f"| {name} | {value} |")
    if "--list" in sys.argv[1:]:
        for length, where in [*functions, *long_files, *test_functions, *long_test_files]:
            print(f"{length:5} {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
