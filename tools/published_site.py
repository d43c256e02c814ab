#!/usr/bin/env python3
"""Writes a SITE.toml of many jobs of the published profiles, and a day for `perseus site emulate`.

usage: published_site.py PERSEUS DATA [--jobs N] [--seed N] [--hours H] > SITE.toml

DATA is the folder of the published measurements. The jobs are of twelve kinds in equal parts (GPT-3 175B on A100 and A40 with
12 to 96 microbatches, GPT-3 XL, BERT, Bloom, Wide-ResNet), with 1 to 16 pipelines drawn with the seed, as in
docs/measurements/site.md. Watts are those of the GPUs. The normal limit is a part of what all jobs draw at maximum clock, which
PERSEUS computes. From the middle of the day less a sixth, it is 25 % lower for three hours, reached over 15 minutes; later comes
an event that is not announced: 30 % less, for an hour, to follow within 30 s. A day of another length has all of this shorter.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

A100, A40 = 83.64, 70.38  # W of a GPU that waits
KINDS = [
    *(("gpt3-175b-a100", "emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", A100, m) for m in (12, 24, 48, 96)),
    *(("gpt3-175b-a40", "emulation/stage_profile/gpt3-175b+a40_bf16.csv", A40, m) for m in (12, 24, 48, 96)),
    ("gpt3-xl-a100", "measured/A100_gpt3-xl_pp4.profile_grid.csv", A100, 128),
    ("bert-a100", "measured/A100_bert-huge-uncased_pp4.profile.csv", A100, 32),
    ("bloom-3b-a40", "measured/A40_bloom-3b_pp8.profile_grid.csv", A40, 128),
    ("wide-resnet-a40", "measured/A40_wide-resnet101_8_pp8.profile_grid.csv", A40, 48),
]


def jobs_text(data: pathlib.Path, jobs: int, seed: int) -> str:
    dice = random.Random(seed)
    counts = collections.Counter((j % len(KINDS), 1 + int(16 * dice.random())) for j in range(jobs))
    text = ""
    for (kind, pipelines), count in sorted(counts.items()):
        name, profile, waiting_w, microbatches = KINDS[kind]
        text += (f'\n[[job]]\nname = "{name}-{microbatches}-x{pipelines}"\nprofile = "{data / profile}"\n'
                 f"microbatches = {microbatches}\nblocking_power_w = {waiting_w}\npipelines = {pipelines}\n"
                 f"count = {count}\nleast_rate = 0.5\n")
    return text


def watts_at_maximum_clock(perseus: str, jobs: str) -> float:
    with tempfile.TemporaryDirectory(prefix="perseus-site-") as folder:
        site = pathlib.Path(folder) / "site.toml"
        site.write_text('[[domain]]\nname = "site"\n' + jobs)
        answer = subprocess.run([perseus, "site", "plan", site, "--effort", "low", "--json"], check=True, text=True,
                                stdout=subprocess.PIPE).stdout
    return next(row["limit_w"] for row in json.loads(answer)["what_if"][0]["curve"] if row["fraction"] == 1)


def day_text(all_max_w: float, hours: float, normal: float, window_s: float) -> str:
    unit = 3600 * hours / 24  # s
    limit_w = round(normal * all_max_w)
    ramp_w_per_s = 0.25 * limit_w / (unit / 4)
    return f"""# Made by tools/published_site.py. Jobs draw {all_max_w / 1e3:.1f} kW at maximum clock.
name = "a day of published profiles"
end_s = {24 * unit:g}
ramp_step_s = {unit / 60:g}

[[domain]]
name = "site"
limit_w = {limit_w}
window_s = {window_s:g}
ramp_down_w_per_s = {ramp_w_per_s:.9g}
ramp_up_w_per_s = {ramp_w_per_s:.9g}

[[limit]]
domain = "site"
from_s = {10 * unit:g}
limit_w = {round(0.75 * limit_w)}

[[limit]]
domain = "site"
from_s = {13 * unit:g}
limit_w = {limit_w}

[[event]]
domain = "site"
at_s = {18 * unit:g}
until_s = {19 * unit:g}
limit_w = {round(0.7 * limit_w)}
within_s = 30

[emulation]
delay_median_s = 0.05
delay_most_s = 1
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("perseus")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--normal", type=float, default=0.85, help="of the power at maximum clock")
    parser.add_argument("--window", type=float, default=60, help="of the meter, s")
    options = parser.parse_args()
    jobs = jobs_text(options.data.resolve(), options.jobs, options.seed)
    all_max_w = watts_at_maximum_clock(options.perseus, jobs)
    sys.stdout.write(day_text(all_max_w, options.hours, options.normal, options.window) + jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
