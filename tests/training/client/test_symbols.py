#!/usr/bin/env python3
"""Checks that libperseus.so exports exactly the functions of perseus.h, has its own soname, and needs no other
library of Perseus.

usage: test_symbols.py LIBPERSEUS PERSEUS_H
"""

import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(library, header):
    declared = set(re.findall(r"PERSEUS_API[^;]*?\b(perseus_\w+)\(", open(header).read()))
    rows = [line.split() for line in output_of("nm", "-D", "--defined-only", library).splitlines()]
    shown = {row[-1].split("@")[0] for row in rows if row[-2] != "A"}
    versions = {row[-1].split("@@")[1] for row in rows if "@@" in row[-1] and row[-2] != "A"}
    dynamic = output_of("readelf", "-d", library)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    problems = []
    if not declared:
        problems.append("no declarations were found")
    if declared - shown:
        problems.append(f"declared and not there: {sorted(declared - shown)}")
    if shown - declared:
        problems.append(f"shown and not declared: {sorted(shown - declared)}")
    if versions != {"PERSEUS_1"}:
        problems.append(f"versions are {sorted(versions)}")
    if "soname: [libperseus.so.1]" not in dynamic:
        problems.append("SONAME is not libperseus.so.1")
    if any("perseus" in name for name in needed):
        problems.append(f"needs {sorted(needed)}")
    print("\n".join(problems) or f"{len(shown)} functions; needs {', '.join(sorted(needed))}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
