#!/usr/bin/env python3
"""Prints the table of docs/measurements/client.md: perseus demo at every depth of run-ahead and switch latency.

usage: tools/device_time_table.py [PERSEUS] [--latency MS ...] [--ahead N ...]

PERSEUS is the program, build/release/apps/perseus unless given. Each row takes some 20 s. Exit code: 0, or that of the
first demo that fails.
"""

import argparse
import json
import subprocess
import sys
import tempfile

AHEAD = ["synchronous", "1", "2", "8", "unbounded"]


def measure(program, latency, ahead):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "demo", "--known-profile", "--dp", "1", "--iterations", "10"]
        command += ["--switch-latency", latency, "--host-ahead", ahead, "--out", folder + "/out"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            sys.exit(done.returncode)
        with open(folder + "/out/summary.json") as file:
            return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="build/release/apps/perseus", metavar="PERSEUS")
    parser.add_argument("--latency", nargs="+", default=["3", "10", "30"], metavar="MS")
    parser.add_argument("--ahead", nargs="+", default=AHEAD, choices=AHEAD, metavar="N")
    options = parser.parse_args()
    print("| switch latency | host ahead | plan, ms | slowdown | saving | predicted saving | client and helper, % of a core |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for latency in options.latency:
        for ahead in options.ahead:
            s = measure(options.program, latency, ahead)
            print(
                f"| {latency} ms | {ahead} | {1e3 * s['plan_time_s']:.1f} | {s['slowdown_pct']:.2f} % | "
                f"{s['energy_saving_pct']:.2f} % | {s['predicted_energy_saving_pct']:.2f} % | "
                f"{s['client_overhead_pct']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
