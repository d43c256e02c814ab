#!/usr/bin/env python3
"""Compares the modeled rows of docs/plan.md's table "What it saves" with what the planner computes now.

A modeled row names a model of the zoo in backquotes, and its GPU. Its figures are those of

    perseus partition --model MODEL --gpu GPU --stages N --profile-out PROFILE.csv
    perseus advise PROFILE.csv -m M --blocking-power W --effort low

with the GPU's own blocking power (docs/partition.md). Prints each row as it should be; ends with 1 if a figure differs.

usage: check_zoo_savings.py PERSEUS [PAGE.md]
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCKING_W = {"H100-SXM": 140}  # src/planning/partitioner/gpu_model.cpp
LARGEST_DIFFERENCE = 0.051  # percentage points: a rounded figure


def output_of(*command) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def savings_pct(perseus: str, model: str, gpu: str, stages: str, microbatches: str) -> list:
    """No slower than maximum clock, and 1 % slower."""
    with tempfile.TemporaryDirectory() as folder:
        profile = pathlib.Path(folder) / "profile.csv"
        output_of(perseus, "partition", "--model", model, "--gpu", gpu, "--stages", stages, "--profile-out", profile)
        rows = json.loads(output_of(perseus, "advise", profile, "-m", microbatches, "--blocking-power", BLOCKING_W[gpu],
                                    "--effort", "low", "--json"))["advice"]
    return [next(row["saving_pct"] for row in rows if row.get("slowdown_pct") == wanted) for wanted in (0, 1)]


def main(perseus: str, readme: str) -> int:
    rows = differing = 0
    for line in pathlib.Path(readme).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.search(r"`([\w.-]+)`", cells[0])
        if not name or len(cells) != 7 or cells[6] != "modeled":
            continue
        rows += 1
        computed = savings_pct(perseus, name[1], cells[1], cells[2], cells[3])
        written = [float(cell.removesuffix(" %")) for cell in cells[4:6]]
        differs = any(abs(a - b) > LARGEST_DIFFERENCE for a, b in zip(computed, written))
        differing += differs
        cells[4:6] = [f"{value:.1f} %" for value in computed]
        print(f"| {' | '.join(cells)} |{'   differs' if differs else ''}", flush=True)
    if rows < 3:
        sys.exit(f"{readme}: {rows} modeled rows; expected at least 3")
    return 1 if differing else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else ROOT / "docs/plan.md"))
