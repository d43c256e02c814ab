#!/usr/bin/env python3
"""Prints the table of docs/measurements/site.md: a day whose jobs draw more than their plans say, without and with feedback.

usage: site_bias.py PERSEUS DATA [--draw-more PCT]

DATA is the folder of the published measurements. The day is that of published_site.py, its meter averages over 5 minutes. The last
row is no feedback: nothing draws more there, and all limits are lower by that much. It is what plans that know the truth do.
"""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

WINDOW_S = 300
FIRST_S = 600


def over_first_s(out: pathlib.Path, limit_w: float) -> int:
    """Seconds of the first minutes at which the mean of the window before them is above the limit."""
    with open(out / "power.csv", encoding="utf-8") as file:
        power_w = [float(row["optimum_w"]) for row in csv.DictReader(file)][:FIRST_S]
    means = (sum(power_w[end - WINDOW_S:end]) / WINDOW_S for end in range(WINDOW_S, FIRST_S + 1))
    return sum(mean > limit_w * (1 + 1e-9) for mean in means)


def run(perseus: str, site: pathlib.Path, out: pathlib.Path, draw_more: float, feedback: str) -> dict:
    subprocess.run([perseus, "site", "emulate", site, "--effort", "low", "--methods", "optimum", "--out", out,
                    "--draw-more", str(draw_more), "--feedback", feedback],
                   check=True, stdout=subprocess.DEVNULL)
    return json.loads((out / "day.json").read_text(encoding="utf-8"))["methods"][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("perseus")
    parser.add_argument("data")
    parser.add_argument("--draw-more", type=float, default=4)
    options = parser.parse_args()
    made = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("published_site.py"), options.perseus, options.data],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    made = re.sub(r"^window_s = .*", f"window_s = {WINDOW_S}", made, flags=re.MULTILINE)
    lower = re.sub(r"^limit_w = (\S+)", lambda m: f"limit_w = {float(m[1]) / (1 + options.draw_more / 100)}", made,
                   flags=re.MULTILINE)
    print("| feedback | throughput | s over | of these in the first 10 min | kW over | plans made again |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("none", "reports", "meter", "both", "known"):
            site, out = pathlib.Path(folder) / "site.toml", pathlib.Path(folder) / name
            site.write_text(lower if name == "known" else made, encoding="utf-8")
            known = name == "known"
            result = run(options.perseus, site, out, 0 if known else options.draw_more, "none" if known else name)
            domain = result["domains"][0]
            first = over_first_s(out, result["proof"][0]["limit_w"])
            print(f"| {name} | {100 * result['throughput']:.2f} % | {domain['over_s']:,.0f} | {first} | "
                  f"{domain['over_w'] / 1000:.1f} | {result['corrections']} |", flush=True)


if __name__ == "__main__":
    main()
