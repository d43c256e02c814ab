#!/usr/bin/env python3
"""Measures `perseus trace` on a large timeline: time and peak memory of the whole command.

  bench/trace_file.py build/release/apps/perseus/perseus [--megabytes 1000]

Writes a timeline of 16 ranks (4 pipelines of 4, 1F1B, 32 microbatches, computations and transfers as a recorder names
them) to a temporary folder, and runs the command on it. Needs that much space.
"""

import argparse
import os
import random
import resource
import subprocess
import tempfile
import time

PIPELINES, RANKS, MICROBATCHES, TRANSFER_S = 4, 4, 32, 0.002


def one_step(durations):
    """(rank, kind, microbatch, begin_s, end_s) of one pipeline in 1F1B, transfers included."""
    orders = []
    for rank in range(RANKS):
        ahead = RANKS - 1 - rank
        order = [("forward", m) for m in range(ahead)]
        for m in range(MICROBATCHES - ahead):
            order += [("forward", m + ahead), ("backward", m)]
        orders.append(order + [("backward", m) for m in range(MICROBATCHES - ahead, MICROBATCHES)])
    done, free, at, events = {}, [0.0] * RANKS, [0] * RANKS, []
    while any(at[r] < len(orders[r]) for r in range(RANKS)):
        for r in range(RANKS):
            while at[r] < len(orders[r]):
                kind, m = orders[r][at[r]]
                source = r - 1 if kind == "forward" else r + 1
                if 0 <= source < RANKS:
                    if (kind, m, source) not in done:
                        break
                    arrived = done[kind, m, source] + TRANSFER_S
                    events.append((r, f"{kind}-recv", m, arrived - TRANSFER_S, arrived))
                    free[r] = max(free[r], arrived)
                end = free[r] + durations[kind]()
                events.append((r, f"{kind}-compute", m, free[r], end))
                free[r] = done[kind, m, r] = end
                at[r] += 1
    return events


def write_timeline(path, size):
    random.seed(1)
    durations = {"forward": lambda: random.gauss(0.1, 0.002), "backward": lambda: random.gauss(0.2, 0.004)}
    patterns = [one_step(durations) for _ in range(16)]
    length_s = 1.05 * max(event[4] for events in patterns for event in events)
    with open(path, "w") as file:
        file.write('{"traceEvents": [\n')
        for d in range(PIPELINES):
            for r in range(RANKS):
                for kind in range(2):
                    file.write(f'{{"ph":"M","name":"thread_name","pid":{d},"tid":{2 * r + kind},'
                               f'"args":{{"name":"PP rank {r}, TP rank 0, {"compute" if kind == 0 else "transfers"}"}}}},\n')
        step, written = 0, 0
        while written < size:
            for d in range(PIPELINES):
                text = "".join(
                    f'{{"name":"{kind}","cat":"{kind}","pid":{d},"tid":{2 * r + (not kind.endswith("compute"))},"ts":{1e6 * (begin + step * length_s)!r},'
                    f'"dur":{1e6 * (end - begin)!r},"ph":"X","args":{{"step":{step},"model_chunk":0,"mb_id":{m},"seq_id":{m}}}}},\n'
                    for r, kind, m, begin, end in patterns[random.randrange(len(patterns))])
                file.write(text)
                written += len(text)
            step += 1
        file.write('{"ph":"M","name":"end"}]}\n')
    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--megabytes", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perseus-trace-") as folder:
        path = os.path.join(folder, "timeline.json")
        steps = write_timeline(path, arguments.megabytes * 1_000_000)
        size = os.path.getsize(path) / 1e6
        began = time.monotonic()
        done = subprocess.run([arguments.program, "trace", path, "--no-progress"], capture_output=True, text=True, check=True)
        took_s = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = used.ru_utime + used.ru_stime
        print("\n".join(done.stdout.splitlines()[:8]))
        print(f"{size:.0f} MB, {steps} steps: {took_s:.1f} s, {cpu_s:.1f} s CPU ({size / cpu_s:.0f} MB/s), peak memory {used.ru_maxrss / 1000:.0f} MB")


if __name__ == "__main__":
    main()
