#!/usr/bin/env python3
"""Compares what the server and the planner cost with a stored commit: the same load on both, in turns, in one run.

usage: bench/against.py COMMIT [TURNS]

Builds this tree (build/release) and COMMIT (build/against/COMMIT, kept) in the same way. Prints medians of TURNS runs
each (default 5) and their ratio: ranks of Zeus's protocol (bench/load_zeus.cpp), and `perseus plan` for 8 stages and
12 microbatches. Processor time, so another program makes it noisier but hardly longer.
"""

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROFILE = ROOT.parent / "shared/data/measured/A40_bloom-3b_pp8.profile.csv"
PLANS = 20


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def stored(commit):
    """The program `perseus` of the commit; -w: an old commit may have warnings of today's compiler."""
    folder = ROOT / "build/against" / commit
    program = folder / "build/apps/perseus"
    if not program.exists():
        (folder / "source").mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True, stdout=subprocess.PIPE).stdout
        run("tar", "x", "-C", folder / "source", input=archive)
        run("cmake", "-G", "Ninja", "-S", folder / "source", "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_UNITY_BUILD=ON", "-DPERSEUS_TESTS=OFF", "-DPERSEUS_BENCH=OFF", "-DCMAKE_CXX_FLAGS=-w",
            stdout=subprocess.DEVNULL)
        run("cmake", "--build", folder / "build", "--target", "perseus")
    return program


def present():
    run("cmake", "--preset", "release", cwd=ROOT, stdout=subprocess.DEVNULL)
    run("cmake", "--build", "--preset", "release", "--target", "perseus", "server_load", cwd=ROOT)
    return ROOT / "build/release/apps/perseus"


def zeus(program):
    """Not checked: server_load exits with 1 where a limit of its table is missed."""
    load = subprocess.run([ROOT / "build/release/bench/server_load", program, PROFILE, "--only", "zeus", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return {f"{row['what']} [{row['unit']}]": row["value"] for row in json.loads(load.stdout)["rows"]}


def plan(program):
    """CPU per `perseus plan`, start and results included."""
    with tempfile.TemporaryDirectory() as folder:
        def times(count, *more):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            for turn in range(count):
                run(program, *more, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count
        command = ("plan", PROFILE, "--schedule", "1f1b", "--microbatches", 12, "--blocking-power", 90)
        return {"perseus plan, 8 x 12, without results [ms]": times(PLANS, *command),
                "perseus --version [ms]": times(PLANS, "--version")}


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=7", sys.argv[1] + "^{commit}"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    programs = {"then": stored(commit), "now": present()}
    measured = {name: {} for name in programs}
    for turn in range(turns):
        for name in sorted(programs, reverse=turn % 2 == 0):
            for what, value in {**zeus(programs[name]), **plan(programs[name])}.items():
                measured[name].setdefault(what, []).append(value)
        print(f"turn {turn + 1} of {turns}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print(f"| | {commit} | now | ratio | ranges |\n| --- | --- | --- | --- | --- |")
    for what, then in measured["then"].items():
        now = measured["now"][what]
        a, b = statistics.median(then), statistics.median(now)
        print(f"| {what} | {a:.3g} | {b:.3g} | {b / a:.2f} | {min(then):.3g} to {max(then):.3g}, {min(now):.3g} to "
              f"{max(now):.3g} |")


if __name__ == "__main__":
    main()
