"""DeepSpeed itself, of the checkout at /deepspeed ($PERSEUS_DEEPSPEED), 2 and 4 ranks: its pipeline engine, as
test_megatron.py has it. Runs in the root that make_root.sh makes; 77 where there is no checkout."""

import os
import sys
import unittest
from pathlib import Path

from job_results import follow, row_of_1f1b

ITERATIONS = 3
ALWAYS_RUN = ("2 stages", "4 stages")


def place(rank, case):
    """DeepSpeed's order of ranks: data, pipeline."""
    data_parallel = case["ranks"] // case["stages"]
    return {
        "microbatches": case["microbatches"],
        "pp_degree": case["stages"],
        "pp_rank": rank // data_parallel,
        "dp_degree": data_parallel,
        "dp_rank": rank % data_parallel,
        "tp_degree": 1,
        "tp_rank": 0,
        "rank": rank,
    }


def row(rank, case, options):
    assert options["schedule"] == "1f1b", options
    return row_of_1f1b(place(rank, case)["pp_rank"], case["stages"], case["microbatches"])


class Schedules(unittest.TestCase):
    def follow(self, ranks):
        follow(
            self, "deepspeed_rank.py", ranks, iterations=ITERATIONS, always_run=ALWAYS_RUN,
            expected_row=row, expected_options=place,
        )  # fmt: skip

    def test_2_ranks(self):
        self.follow(2)

    def test_4_ranks(self):
        self.follow(4)


if __name__ == "__main__":
    if not Path("/deepspeed/deepspeed").is_dir():
        print("PERSEUS_DEEPSPEED names no checkout of DeepSpeed")
        sys.exit(77)
    os.environ["PYTHONPATH"] += ":/deepspeed"
    unittest.main()
