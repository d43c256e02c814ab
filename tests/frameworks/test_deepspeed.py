"""DeepSpeed itself, of the checkout at /deepspeed ($PERSEUS_DEEPSPEED), 2 and 4 ranks: its pipeline engine, as
test_megatron.py has it. Runs in the root that make_root.sh makes; 77 where there is no checkout."""

import os
import sys
import unittest
from pathlib import Path

from job_results import check, row_of_1f1b
from run_job import run

ITERATIONS, LIMIT_S = 3, 300
ALWAYS_RUN = ("2 stages", "4 stages")


class Schedules(unittest.TestCase):
    def follow(self, ranks):
        results = run("deepspeed_rank.py", ranks, limit_s=LIMIT_S)
        for name in results[0]:
            said = [result[name] for result in results]
            if "skipped" in said[0]:
                print(f"{name}: skipped: {said[0]['skipped']}", file=sys.stderr)
                self.assertNotIn(name, ALWAYS_RUN)
                continue
            with self.subTest(name):
                case = said[0]["case"]
                data_parallel = ranks // case["stages"]

                def row(rank, options, case=case, data_parallel=data_parallel):
                    self.assertEqual(options["schedule"], "1f1b")
                    return row_of_1f1b(rank // data_parallel, case["stages"], case["microbatches"])

                def options(rank, case=case, data_parallel=data_parallel):
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

                check(self, said, ITERATIONS, row, options)
                print(f"{name}: followed", file=sys.stderr)

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
