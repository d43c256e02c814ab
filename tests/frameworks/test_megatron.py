"""Megatron Core itself, of the checkout at /megatron ($PERSEUS_MEGATRON), 2 and 4 ranks: the adapter reports what
the model recorded, in the order that the server receives; training is bit-identical without Perseus, with it, and when
each of its calls raises. Runs in the root that make_root.sh makes; 77 where there is no checkout."""

import os
import sys
import unittest
from pathlib import Path

from job_results import follow, row_of_1f1b, row_of_table

ITERATIONS = 3
ALWAYS_RUN = ("no pipeline", "1F1B", "interleaved", "1F1B, 4 ranks", "interleaved, 4 ranks")


def place(rank, case):
    """Megatron's order of ranks: tensor, context, data, pipeline."""
    tp = case["tp"] * case["cp"]
    dp = case["ranks"] // (tp * case["pp"])
    return {
        "microbatches": case["microbatches"],
        "chunks": case["chunks"] or 1,
        "pp_degree": case["pp"],
        "pp_rank": rank // (tp * dp),
        "dp_degree": dp,
        "dp_rank": rank // tp % dp,
        "tp_degree": tp,
        "tp_rank": rank % tp,
    }


def row(rank, case, options):
    pp_rank = place(rank, case)["pp_rank"]
    if case["chunks"]:
        return row_of_table(options["action_table"], pp_rank)
    assert options["schedule"] == "1f1b", options
    return row_of_1f1b(pp_rank, case["pp"], case["microbatches"])


class Schedules(unittest.TestCase):
    def follow(self, ranks, *cases):
        follow(
            self, "megatron_rank.py", ranks, *cases, iterations=ITERATIONS, always_run=ALWAYS_RUN,
            expected_row=row, expected_options=place,
        )  # fmt: skip

    def test_2_ranks(self):
        self.follow(2)

    def test_4_ranks(self):
        self.follow(4)


if __name__ == "__main__":
    if not Path("/megatron/megatron/core").is_dir():
        print("PERSEUS_MEGATRON names no checkout of Megatron-LM")
        sys.exit(77)
    os.environ["PYTHONPATH"] += ":/megatron"
    unittest.main()
