#!/usr/bin/env python3
"""Put past faults of the server back, one by one, and see whether the tests find each.

Each file of tools/faults is a patch of one source file, with a line that says what went wrong and which commit mended it
(or none: a promise that the code keeps from the beginning). The simulation has to find it, or what a line
"Found by: TARGET FILTER" names. The patched file is compiled alone and linked before the modules' libraries, so that the
working tree and the build stay as they are.

    tools/put_back_faults.py BUILD [NAME...]     # BUILD: a folder made by Ninja
    tools/put_back_faults.py --check             # only whether each patch applies

PERSEUS_SIMULATED_DAYS: how long each fault has to be found, 60 days without it. Exits with 1 if one is not found.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tools" / "faults"
SIMULATION = ("perseus_simulation_tests", "Simulation.KeepsEveryPromise")
DAYS = os.environ.get("PERSEUS_SIMULATED_DAYS", "60")


def applies(patch):
    return subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True)


def source_of(patch):
    (source,) = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.M)
    return source


def test_of(patch):
    """The program and the filter of the test that has to find the fault."""
    named = re.search(r"^Found by: (\S+) (\S+)$", patch.read_text(), re.M)
    return named.groups() if named else SIMULATION


class Build:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        compiled = subprocess.run(["ninja", "-t", "compdb"], cwd=self.folder, capture_output=True, text=True, check=True)
        self.commands = json.loads(compiled.stdout)

    def compile(self, source, copy, made):
        module = f"CMakeFiles/perseus_{pathlib.Path(source).parent.name}.dir/"
        command = next(one["command"] for one in self.commands
                       if one["output"].startswith(module) and one["output"].endswith(".o"))
        words = shlex.split(command)
        kept = []
        skip = False
        for word in words:
            if skip:
                skip = False
            elif word in ("-o", "-c", "-MF", "-MT"):
                skip = True
            elif word not in ("-MD", "-Werror"):
                kept.append(word)
        subprocess.run([*kept, "-w", "-c", str(copy), "-o", str(made)], cwd=self.folder, check=True)

    def link_with(self, made, target, program):
        linked = subprocess.run(["ninja", "-t", "commands", target], cwd=self.folder, capture_output=True, text=True,
                                check=True)
        link = next(line for line in reversed(linked.stdout.splitlines()) if re.search(rf"-o \S*{target}\b", line))
        command = re.sub(rf"-o \S*{target}\b", f"{made} -Wl,-z,muldefs -o {program}", link, count=1)
        subprocess.run(command, shell=True, cwd=self.folder, check=True, capture_output=True)


def find(build, patch, scratch):
    """What the test says of the fault; empty: it does not find it."""
    source = source_of(patch)
    target, test = test_of(patch)
    copy = scratch / source
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text((ROOT / source).read_text())
    subprocess.run(["git", "apply", "--unsafe-paths", f"--directory={scratch}", str(patch)], cwd="/", check=True)
    made, program = scratch / "fault.o", scratch / "tests"
    build.compile(source, copy, made)
    build.link_with(made, target, program)
    ran = subprocess.run([program, f"--gtest_filter={test}"], capture_output=True, text=True,
                         env={**os.environ, "PERSEUS_SIMULATED_DAYS": DAYS}, errors="replace")
    if ran.returncode == 0 and "[  PASSED  ] 0 tests." in ran.stdout:
        sys.exit(f"{patch.name}: {target} has no test {test}")
    if ran.returncode == 0:
        return ""
    said = (re.search(r"(seed \d+: [^\"\\\n]*)", ran.stdout) or re.search(r"(perseus: .*)", ran.stderr)
            or re.search(r"(\S+\.(?:txt|cpp):\d+: .*)", ran.stdout))
    return said.group(1) if said else f"ended with {ran.returncode}"


def main():
    patches = sorted(FAULTS.glob("*.patch"))
    failed = [(patch, answer.stderr) for patch in patches if (answer := applies(patch)).returncode != 0]
    for patch, why in failed:
        print(f"{patch.name} does not apply: put the same fault into the code as it is now\n{why}")
    if failed or not patches:
        return 1
    if sys.argv[1:] == ["--check"]:
        print(f"{len(patches)} faults apply")
        return 0
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    wanted = sys.argv[2:]
    patches = [patch for patch in patches if not wanted or patch.stem in wanted]
    subprocess.run(["ninja", *{test_of(patch)[0] for patch in patches}], cwd=sys.argv[1], check=True, stdout=subprocess.DEVNULL)
    build = Build(sys.argv[1])
    found = 0
    for patch in patches:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            what = find(build, patch, pathlib.Path(scratch).resolve())
        found += what != ""
        print(f"{patch.stem}: {what or 'NOT FOUND'} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{found} of {len(patches)} faults found within {DAYS} days")
    return 0 if found == len(patches) else 1


if __name__ == "__main__":
    sys.exit(main())
