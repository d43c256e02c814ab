#!/usr/bin/env python3
"""The oldest C and C++ runtime on which all programs and libraries in a folder run.

It is the newest symbol version that one of them imports (objdump -T).

usage: oldest_system.py FOLDER [--within GLIBC GLIBCXX]

Output: "GLIBC 2.34 (FILE) GLIBCXX 3.4.29 (FILE)". Exit code 1 if one of them is newer than --within allows, and the names of
        such symbols.
"""

import argparse
import os
import re
import subprocess
import sys

RUNTIMES = ["GLIBC", "GLIBCXX"]
IMPORT = re.compile(r"\*UND\*\s+\S+\s+\((GLIBC|GLIBCXX)_([0-9.]+)\)\s+(\S+)")


def number(version):
    return tuple(int(part) for part in version.split("."))


def imports(folder):
    """(runtime, version, symbol, file) of every ELF file."""
    for path, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(path, name)
            if os.path.islink(file):
                continue
            with open(file, "rb") as opened:
                if opened.read(4) != b"\x7fELF":
                    continue
            text = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
            for runtime, version, symbol in IMPORT.findall(text):
                yield runtime, version, symbol, name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--within", nargs=2, metavar=tuple(RUNTIMES))
    options = parser.parse_args()
    found = list(imports(options.folder))
    newest = []
    for runtime in RUNTIMES:
        of_runtime = [one for one in found if one[0] == runtime]
        if not of_runtime:
            sys.exit(f"{options.folder}: no program imports a symbol of {runtime}")
        _, version, _, file = max(of_runtime, key=lambda one: number(one[1]))
        newest.append(f"{runtime} {version} ({file})")
    print(" ".join(newest))
    if options.within:
        allowed = dict(zip(RUNTIMES, map(number, options.within)))
        newer = sorted({f"{file}: {symbol} of {runtime} {version}" for runtime, version, symbol, file in found
                        if number(version) > allowed[runtime]})  # fmt: skip
        if newer:
            sys.exit("\n".join(newer))


if __name__ == "__main__":
    main()
