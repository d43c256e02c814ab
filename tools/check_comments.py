#!/usr/bin/env python3
"""Checks the comment that opens a C++ file for damage by the formatter, which rewraps comments that are too long.

- One key (Problem, Input, Output, ...) a line.
- No line that falls out of an indented paragraph: "// the", then "//          rest of the sentence".

usage: check_comments.py [ROOT]   prints file:line of each violation; exit 1 if there is one
"""

import pathlib
import re
import sys

KEY = r"(?:Problem|Method|Model|Shape|Input|Output|Errors|Cost|Threads|Source)"
TWO_KEYS = re.compile(rf"// .*\S +{KEY}: ")
OPENS_KEY = re.compile(r"// [A-Z]\w*: ")
INDENTED = re.compile(r"// {9,}\S")
FOLDERS = ["apps", "bench", "examples", "include", "src", "tests", "tools"]


def violations(lines: list[str]):
    """The line numbers and what is wrong, in the comment at the top."""
    for number, line in enumerate(lines):
        if not line.startswith("//"):
            return
        if TWO_KEYS.match(line):
            yield number + 1, "two keys on one line"
        falls_out = not INDENTED.match(line) and not OPENS_KEY.match(line) and number > 0 and number + 1 < len(lines)
        if falls_out and len(line) > 3 and INDENTED.match(lines[number + 1]):
            before = lines[number - 1]
            if len(before) > 100 and (INDENTED.match(before) or OPENS_KEY.match(before)):
                yield number + 1, "falls out of the paragraph around it"


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    files = [file for folder in FOLDERS for file in sorted((root / folder).rglob("*")) if file.suffix in {".h", ".hpp", ".cpp"}]
    found = 0
    for file in files:
        for number, wrong in violations(file.read_text().splitlines()):
            found += 1
            print(f"{file.relative_to(root)}:{number}: {wrong}")
    print(f"{len(files)} files, {found} violations")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
