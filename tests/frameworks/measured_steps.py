"""What steps of a job took on simulated GPUs, by the GPUs' own counters, as if this machine had never been late.

Input: per rank, a list of steps: "time_s", "energy_j", and "lost_s", how long the GPU had nothing to run because the machine
was late. Output: medians over the steps: of the time, and of the energy of all GPUs. While a GPU waits it uses its blocking
power, and a GPU that is late keeps the others waiting. Where the machine is late for more than MOST_LOST of a step, the rest
tells nothing any more: GPUs are late one after another, and clocks are set late, too.
"""

from statistics import median

BLOCKING_POWER_W = 90  # of perseus.simulated_gpu
MOST_LOST = 0.05


def medians(ranks):
    steps = []
    for of_ranks in zip(*ranks):
        lost_s = max(step["lost_s"] for step in of_ranks)
        energy_j = sum(step["energy_j"] for step in of_ranks) - len(ranks) * BLOCKING_POWER_W * lost_s
        steps.append({"time_s": max(step["time_s"] for step in of_ranks) - lost_s, "energy_j": energy_j, "lost_s": lost_s})
    return {name: median(step[name] for step in steps) for name in steps[0]}


def steps_between(stamps):
    """Of a simulated GPU's stamps, one after each step."""
    return [
        {
            "time_s": after.time_s - before.time_s,
            "energy_j": after.energy_j - before.energy_j,
            "lost_s": after.lost_s + after.starved_s - before.lost_s - before.starved_s,
        }
        for before, after in zip(stamps, stamps[1:])
    ]


def change_pct(before, after):
    """(saving of energy, slowdown) in percent."""
    return 100 * (1 - after["energy_j"] / before["energy_j"]), 100 * (after["time_s"] / before["time_s"] - 1)


def skip_if_late(test, *figures):
    late = max(of["lost_s"] / of["time_s"] for of in figures)
    if late > MOST_LOST:
        test.skipTest(f"this machine was late for {100 * late:.1f} % of a step; at most: {100 * MOST_LOST:.0f} %")
