#!/usr/bin/env python3
"""Error bars of `perseus advise` against the real spread of its savings, on profiles with known noise.

usage: advise_report.py PERSEUS NOISE SEEDS PROFILE.csv...

NOISE is the relative noise of one sample, in percent. Each PROFILE.csv is a truth: SEEDS copies of it get independent normal
noise in every time and energy, and `perseus advise` reads each copy. Prints a Markdown table, in points of saving: the mean
of the claimed error bars, the standard deviation of the claimed savings, and their distance (rms) from the saving that
`perseus advise` claims for the truth.
"""

import csv
import io
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys

OPTIONS = ["-m", "12", "--blocking-power", "90", "--effort", "low", "--gpus", "64", "--json"]
ROWS = (0, 2, 5)  # no slower; 1 % slower; a straggler 1.1 times slower


def advice(program, profile, *options):
    ran = subprocess.run([program, "advise", "/dev/stdin", *OPTIONS, *options], input=profile, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(ran.stderr)
    return json.loads(ran.stdout)["advice"]


def with_noise(profile, relative, engine):
    rows = list(csv.DictReader(io.StringIO(profile)))
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys())
    writer.writeheader()
    for row in rows:
        for column in ("time", "energy"):
            row[column] = float(row[column]) * (1 + relative * engine.gauss(0, 1))
        writer.writerow(row)
    return text.getvalue()


def main(program, noise_pct, seeds, *paths):
    print("| truth | row | saving of the truth | error bar | spread | off |\n| --- | --- | --- | --- | --- | --- |")
    for path in map(pathlib.Path, paths):
        profile, engine = path.read_text(), random.Random(1)
        truth = advice(program, profile, "--noise", "0")
        noisy = [advice(program, with_noise(profile, float(noise_pct) / 100, engine)) for _ in range(int(seeds))]
        for row in ROWS:
            real = truth[row]["saving_pct"]
            savings = [one[row]["saving_pct"] for one in noisy]
            bar = statistics.fmean(one[row].get("saving_stddev_pct", 0) for one in noisy)
            off = math.sqrt(statistics.fmean((saving - real) ** 2 for saving in savings))
            print(f"| {path.stem} | {truth[row]['situation']} | {real:.2f} | {bar:.2f} | {statistics.stdev(savings):.2f} | {off:.2f} |")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
