#!/usr/bin/env python3
"""Makes data/sample_profile.csv: a profile of an imaginary 4-stage pipeline from a small model of a GPU.

And data/sample_profile_3_stages.csv: the same layers on 3 stages, as after the loss of a stage's GPUs.

Nothing in it was measured. The model, for one computation at SM clock f:

    time   = work / f + memory          a part that scales with the clock and a part that waits for memory
    V(f)   = 0.75 V up to 900 MHz, then rising in proportion to 1.05 V at 1500 MHz
    power  = idle + activity * f * V(f)^2
    energy = power * time

Each number is blurred by a normal noise of 0.1 % from a fixed seed, as repeated measurements would be. A backward is
twice its forward's work. The stages are imbalanced as real partitions are: the last one also computes the loss.

usage: make_sample_profile.py [4 | 3] > data/sample_profile.csv
"""

import random
import sys

SEED = 20240
CLOCKS_MHZ = range(1500, 570 - 1, -45)
IDLE_W = 90.0
ACTIVITY_W_PER_MHZ_V2 = 0.145
# number of stages -> for each (work of a forward in megacycles, memory time in s)
FORWARD = {
    4: [(42.0, 0.0052), (46.0, 0.0055), (45.0, 0.0054), (55.0, 0.0061)],
    3: [(58.0, 0.0069), (61.0, 0.0072), (69.0, 0.0081)],
}
BACKWARD_OVER_FORWARD = 2.0
NOISE = 0.001


def volts(clock_mhz: float) -> float:
    return 0.75 + max(0.0, clock_mhz - 900.0) * (1.05 - 0.75) / (1500.0 - 900.0)


def main() -> None:
    noise = random.Random(SEED)
    stages = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print("stage,instruction,frequency,time,energy")
    for stage, (work_mcycles, memory_s) in enumerate(FORWARD[stages]):
        for instruction, scale in [("forward", 1.0), ("backward", BACKWARD_OVER_FORWARD)]:
            for clock_mhz in CLOCKS_MHZ:
                time_s = scale * (work_mcycles / clock_mhz + memory_s)
                power_w = IDLE_W + ACTIVITY_W_PER_MHZ_V2 * clock_mhz * volts(clock_mhz) ** 2
                time_s *= noise.gauss(1.0, NOISE)
                energy_j = power_w * time_s * noise.gauss(1.0, NOISE)
                print(f"{stage},{instruction},{clock_mhz},{time_s:.6f},{energy_j:.4f}")


if __name__ == "__main__":
    main()
