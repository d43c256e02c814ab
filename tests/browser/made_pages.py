"""The pages that perseus writes: reports and results of its commands, on small inputs."""

import json
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


def trace_of_runs(stages=2, microbatches=4, clocks=(1000, 900, 800, 700, 600)):
    """Traces of runs for perseus calibrate: OPS and ITERS of a 1F1B job, each plan with a clock of its own per stage."""
    ops, iterations = ["plan,stage,op,instruction,microbatch,frequency_mhz,time_s"], ["plan,kind,stage,iter_time_s,iter_energy_j,load_total_s,n_iters"]
    orders = []
    for stage in range(stages):
        ahead = stages - 1 - stage
        order = [("forward", m) for m in range(ahead)]
        for m in range(microbatches - ahead):
            order += [("forward", m + ahead), ("backward", m)]
        orders.append(order + [("backward", m) for m in range(microbatches - ahead, microbatches)])
    for plan in range(2 * len(clocks)):
        frequency = [clocks[(plan + stage * (1 + plan // len(clocks))) % len(clocks)] for stage in range(stages)]
        time_s = [{"forward": 0.05 * (1 + 0.1 * stage) * 1000 / frequency[stage], "backward": 0.1 * (1 + 0.1 * stage) * 1000 / frequency[stage]}
                  for stage in range(stages)]
        done, at = {}, [0] * stages
        while any(at[stage] < len(orders[stage]) for stage in range(stages)):
            for stage in range(stages):
                while at[stage] < len(orders[stage]):
                    instruction, m = orders[stage][at[stage]]
                    before = stage - 1 if instruction == "forward" else stage + 1
                    needs = [(instruction, m, before)] if 0 <= before < stages else []
                    needs += [(*orders[stage][at[stage] - 1], stage)] if at[stage] > 0 else []
                    if any(need not in done for need in needs):
                        break
                    done[instruction, m, stage] = max((done[need] for need in needs), default=0) + time_s[stage][instruction]
                    ops.append(f"{plan},{stage},{at[stage]},{instruction},{m},{frequency[stage]},{time_s[stage][instruction]:.6f}")
                    at[stage] += 1
        total_s = max(done.values())
        total_j = 0
        for stage in range(stages):
            busy_s = microbatches * sum(time_s[stage].values())
            energy_j = busy_s * (100 + 200 * (frequency[stage] / 1000) ** 3) + (total_s - busy_s) * 70
            total_j += energy_j
            iterations.append(f"{plan},perseus,{stage},{total_s:.6f},{energy_j:.3f},,20")
        iterations.append(f"{plan},perseus,-1,{total_s:.6f},{total_j:.3f},,20")
    return "\n".join(ops) + "\n", "\n".join(iterations) + "\n"


def timeline(pipelines=2, steps=3, microbatches=4):
    """A timeline for perseus trace: GPipe on two ranks; rank 1 of pipeline 1 takes half as long again."""
    events = [{"ph": "M", "name": "thread_name", "pid": d, "tid": r, "args": {"name": f"PP rank {r}, TP rank 0, compute"}}
              for d in range(pipelines) for r in range(2)]
    for step in range(steps):
        for d in range(pipelines):
            done, free = {}, [2.0 * step] * 2
            for kind, ranks, base_s in (("forward", (0, 1), 0.1), ("backward", (1, 0), 0.2)):
                for m in range(microbatches):
                    for r in ranks:
                        begin = max(free[r], done.get((kind, m), 0))
                        free[r] = done[kind, m] = begin + base_s * (1.5 if (d, r) == (1, 1) else 1)
                        events.append({"ph": "X", "name": f"{kind}-compute", "pid": d, "tid": r, "ts": 1e6 * begin,
                                       "dur": 1e6 * (free[r] - begin), "args": {"step": step, "mb_id": m, "model_chunk": 0}})
    return json.dumps(events)


def make(program, folder):
    """Writes the pages into the folder. Returns {name: path}."""
    def run(*arguments):
        # The demo's plan is kept however late a busy machine makes its iterations.
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "PERSEUS_PLAN_TOLERANCE": "-1"})
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
    for name, text in zip(("ops.csv", "iters.csv"), trace_of_runs()):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    with open(os.path.join(folder, "timeline.json"), "w") as file:
        file.write(timeline())
    run("trace", "timeline.json", "--effort", "low", "--out", "traced", "--no-progress")
    run("calibrate", "ops.csv", "iters.csv", "--out", "fitted")
    run("site", "plan", os.path.join(ROOT, "data/sample_site.toml"), "--out", "site")
    run("demo", "--known-profile", "--iterations", "2", "--time-scale", "0.2", "--out", "demo")
    pages = {"report": "plans/report.html", "configurations": "search/configurations.html", "comparison": "comparison/comparison.html",
             "emulation": "emulation/emulation.html",
             "reproduction": "reproduction/index.html", "partition": "partition.html", "calibration": "fitted/report.html", "trace": "traced/report.html",
             "site plan": "site/site.html", "demo": "demo/report.html"}
    return {name: os.path.join(folder, page) for name, page in pages.items()}
