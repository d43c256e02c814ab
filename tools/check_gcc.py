#!/usr/bin/env python3
"""Has g++ read, without making anything of it, what a build with g++ has not compiled yet.

The thread sanitizer's build makes a part of the programs; both compilers must take everything without a warning.

usage: check_gcc.py BUILD_DIR     which holds compile_commands.json
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

# It includes what only a build makes.
INCLUDES_GENERATED = "perseus_print_layout"


OUTPUT = re.compile(r" -o (\S+) -c ")


def is_compiled(entry: dict) -> bool:
    return (pathlib.Path(entry["directory"]) / OUTPUT.search(entry["command"])[1]).exists()


def read(entry: dict) -> tuple[bool, str]:
    command = OUTPUT.sub(" -fsyntax-only ", entry["command"])
    done = subprocess.run(["sh", "-c", command], cwd=entry["directory"], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main() -> int:
    entries = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    left = [entry for entry in entries if not is_compiled(entry) and INCLUDES_GENERATED not in entry["command"]]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for ok, output in pool.map(read, left):
            failed += not ok
            if not ok:
                print(output)
    print(f"g++: {len(left)} files read, {failed} failed; {len(entries) - len(left)} were compiled before")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
