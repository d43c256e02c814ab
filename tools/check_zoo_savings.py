#!/usr/bin/env python3
"""Compares the modeled rows of docs/plan.md's table "What it saves" with what the planner computes now.

A modeled row names a model of the zoo in backquotes, and its GPU. Its figures are those of

    perseus partition --model MODEL --gpu GPU --stages N --profile-out PROFILE.csv
    perseus advise PROFILE.csv -m M --blocking-power W --effort low

with the GPU's own blocking power (docs/partition.md). The range beside each figure is one standard deviation around the
mean of the same advice from the profile's highest clock alone, whose other clocks `--model-clocks GPU` models: 64 draws
of what the zoo takes for granted about the GPU (docs/advise.md). Prints each row as it should be, and the tokens per
second and GPU that its times mean, also of the zoo's mixtures of experts; ends with 1 if a figure differs. It computes ranges, which takes minutes, only
with --ranges.

usage: check_zoo_savings.py [--ranges] PERSEUS [PAGE.md]
"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCKING_W = {"H100-SXM": 140}  # src/planning/partitioner/gpu_model.cpp
LARGEST_DIFFERENCE = 0.051  # percentage points: a rounded figure
TOKENS = {"llama3-8b": 8192, "llama3-70b": 8192 / 8, "qwen3-32b": 4096 / 4,  # a microbatch and GPU: model_zoo.cpp
          "qwen3-30b-a3b": 4096, "deepseek-v3": 4096}
WITHOUT_ROW = {"qwen3-30b-a3b": ("4", "32"), "deepseek-v3": ("16", "64")}  # only their rates, for docs/partition.md


def output_of(*command) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def advice(perseus: str, profile: pathlib.Path, gpu: str, microbatches: str, *more) -> list:
    """The rows for no slower than maximum clock, and 1 % slower."""
    rows = json.loads(output_of(perseus, "advise", profile, "-m", microbatches, "--blocking-power", BLOCKING_W[gpu],
                                "--effort", "low", "--json", *more))["advice"]
    return [next(row for row in rows if row.get("slowdown_pct") == wanted) for wanted in (0, 1)]


def rate(lines: list, stages: int, microbatches: int, tokens: float) -> float:
    """Tokens per second and GPU of 1F1B at the highest clock: the slowest stage decides."""
    busy_s = dict.fromkeys(range(stages), 0.0)
    for line in lines:
        busy_s[int(line["stage"])] += float(line["time"])
    return tokens / max(busy_s.values()) / stages * microbatches / (microbatches + stages - 1)


def profile_of(perseus: str, model: str, gpu: str, stages: str, profile: pathlib.Path) -> list:
    """Writes it; the lines of its highest clock."""
    output_of(perseus, "partition", "--model", model, "--gpu", gpu, "--stages", stages, "--profile-out", profile)
    with profile.open(newline="") as file:
        lines = list(csv.DictReader(file))
    top = max(int(line["frequency"]) for line in lines)
    return [line for line in lines if int(line["frequency"]) == top]


def computed_row(perseus: str, with_ranges: bool, model: str, gpu: str, stages: str, microbatches: str) -> tuple:
    """The two savings, their ranges as text or None, and the rate."""
    with tempfile.TemporaryDirectory() as folder:
        profile, highest = pathlib.Path(folder) / "profile.csv", pathlib.Path(folder) / "highest.csv"
        lines = profile_of(perseus, model, gpu, stages, profile)
        rows = advice(perseus, profile, gpu, microbatches)
        speed = rate(lines, int(stages), int(microbatches), TOKENS[model])
        savings = [row["saving_pct"] for row in rows]
        if not with_ranges:
            return savings, [None, None], speed
        with highest.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0].keys())
            writer.writeheader()
            writer.writerows(lines)
        modeled = advice(perseus, highest, gpu, microbatches, "--model-clocks", gpu)
    ranges = [f"({row['saving_pct'] - row['saving_stddev_pct']:.0f} to {row['saving_pct'] + row['saving_stddev_pct']:.0f})"
              for row in modeled]
    return savings, ranges, speed


def main(perseus: str, readme: str, with_ranges: bool) -> int:
    rows = differing = 0
    for line in pathlib.Path(readme).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.search(r"`([\w.-]+)`", cells[0])
        if not name or len(cells) != 7 or cells[6] != "modeled":
            continue
        rows += 1
        computed, ranges, speed = computed_row(perseus, with_ranges, name[1], cells[1], cells[2], cells[3])
        written = [re.fullmatch(r"([\d.]+) % (\(\d+ to \d+\))", cell) for cell in cells[4:6]]
        if not all(written):
            sys.exit(f"{readme}: {line}: the savings must have the form '5.5 % (4 to 15)'")
        ranges = [own or cell[2] for own, cell in zip(ranges, written)]
        differs = any(abs(value - float(cell[1])) > LARGEST_DIFFERENCE or own != cell[2]
                      for cell, value, own in zip(written, computed, ranges))
        differing += differs
        cells[4:6] = [f"{value:.1f} % {own}" for value, own in zip(computed, ranges)]
        print(f"| {' | '.join(cells)} |   {speed:,.0f} tokens/s a GPU{'   differs' if differs else ''}",
              flush=True)
    for model, (stages, microbatches) in WITHOUT_ROW.items():
        with tempfile.TemporaryDirectory() as folder:
            lines = profile_of(perseus, model, "H100-SXM", stages, pathlib.Path(folder) / "profile.csv")
        print(f"{model}: {rate(lines, int(stages), int(microbatches), TOKENS[model]):,.0f} tokens/s a GPU", flush=True)
    if rows < 3:
        sys.exit(f"{readme}: {rows} modeled rows; expected at least 3")
    return 1 if differing else 0


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--ranges"]
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    sys.exit(main(arguments[0], arguments[1] if len(arguments) == 2 else ROOT / "docs/plan.md", "--ranges" in sys.argv))
