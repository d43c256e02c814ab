"""The pages that perseus writes: reports and results of its commands, on small inputs."""

import os
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SAMPLE = os.path.join(ROOT, "data/sample_profile.csv")
PIPELINE = [SAMPLE, "--schedule", "1f1b", "-m", "4", "--blocking-power", "90", "--no-progress"]
# Every kind of change; the profile of microbatches of twice the size is the same one, so it saves half.
SEARCH = [SAMPLE, "--schedule", "1f1b,zero-bubble", "-m", "6", "--blocking-power", "90", "--no-progress", "--deadlines", "50",
          "--recompute", "best", "--measured-with", "recomputation", "--stage-layers", "6", "--slowdown", "0.3%",
          "--microbatch-profile", f"3={SAMPLE}"]
TINY = """stage,instruction,frequency,time,energy
0,forward,1000,0.10,30\n0,forward,800,0.12,25\n0,forward,600,0.15,22
0,backward,1000,0.20,60\n0,backward,800,0.24,50\n0,backward,600,0.30,44
1,forward,1000,0.12,36\n1,forward,800,0.144,30\n1,forward,600,0.18,26
1,backward,1000,0.24,72\n1,backward,800,0.288,60\n1,backward,600,0.36,53
"""


def make(program, folder):
    """Writes the pages into the folder. Returns {name: path}."""
    def run(*arguments):
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"perseus {' '.join(arguments)}: {done.stderr}")

    artifact = os.path.join(folder, "data/emulation/stage_profile")
    os.makedirs(artifact)
    with open(os.path.join(artifact, "tiny+gpu_x_bf16.csv"), "w") as file:
        file.write(TINY)
    run("plan", *PIPELINE, "--effort", "low", "--out", "plans")
    run("plan", *SEARCH, "--effort", "low", "--out", "search")
    run("compare", *PIPELINE, "--methods", "exact,envpipe,zeus-global,all-max", "--effort", "low", "--out", "comparison")
    run("emulate", os.path.join(ROOT, "data/sample_scenario.toml"), "--out", "emulation", "--no-progress")
    run("reproduce", "data", "--out", "reproduction", "--microbatches", "2,4", "--no-progress")
    run("partition", "--model", "gpt3-1b", "--gpu", "A100-PCIe", "--stages", "4", "--page-out", "partition.html")
    pages = {"report": "plans/report.html", "configurations": "search/configurations.html", "comparison": "comparison/comparison.html", "emulation": "emulation/emulation.html",
             "reproduction": "reproduction/index.html", "partition": "partition.html"}
    return {name: os.path.join(folder, page) for name, page in pages.items()}
