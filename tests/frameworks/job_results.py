"""Checks the results of a job that trained without Perseus, with it, and with a failing client (megatron_rank.py,
deepspeed_rank.py)."""

import re
import sys

from run_job import run

KINDS = {"F": "forward", "B": "backward"}


def row_of_table(table, rank):
    """The computations of a rank in the table that goes to the server: [instruction, microbatch, chunk]."""
    cells = re.findall(r"(\d+)([FB])(\d+)", table.splitlines()[rank])
    chunk_of = {stage: chunk for chunk, stage in enumerate(sorted({int(stage) for stage, _, _ in cells}))}
    return [[KINDS[kind], int(microbatch), chunk_of[int(stage)]] for stage, kind, microbatch in cells]


def row_of_1f1b(rank, ranks, microbatches):
    ahead = min(ranks - 1 - rank, microbatches)
    forwards = [["forward", microbatch, 0] for microbatch in range(microbatches)]
    backwards = [["backward", microbatch, 0] for microbatch in range(microbatches)]
    row = forwards[:ahead]
    for forward, backward in zip(forwards[ahead:], backwards):
        row += [forward, backward]
    return row + backwards[microbatches - ahead :]


def check(test, ranks, iterations, expected_row, expected_options):
    """ranks: what each printed. expected_row(rank, options): the computations of an iteration."""
    without, recorded, failing = ([said[mode] for said in ranks] for mode in ("without", "recorded", "failing"))
    for rank, said in enumerate(recorded):
        test.assertEqual(said["wrong"], [])
        row = expected_row(rank, said["options"])
        test.assertEqual(said["computations"], iterations * row)
        test.assertEqual(said["steps"], iterations * ["train", "evaluate"])
        options = {name: said["options"].get(name) for name in expected_options(rank)}
        test.assertEqual(options, expected_options(rank))
        test.assertGreaterEqual(failing[rank]["failures"], iterations * 3 * len(row))
    for key in ("losses", "weights"):
        expected = [said[key] for said in without]
        test.assertEqual([said[key] for said in recorded], expected)
        test.assertEqual([said[key] for said in failing], expected)
    test.assertTrue(any(said["losses"] for said in without))


def follow(test, program, ranks, *cases, iterations, always_run, expected_row, expected_options):
    """Runs the program in so many ranks and checks each of its cases, except those that it reports as skipped.
    expected_row(rank, case, options) and expected_options(rank, case): see check()."""
    results = run(program, ranks, *cases)
    for name in results[0]:
        said = [result[name] for result in results]
        if "skipped" in said[0]:
            print(f"{name}: skipped: {said[0]['skipped']}", file=sys.stderr)
            test.assertNotIn(name, always_run)
            continue
        with test.subTest(name):
            case = said[0]["case"]
            check(
                test,
                said,
                iterations,
                lambda rank, options, case=case: expected_row(rank, case, options),
                lambda rank, case=case: expected_options(rank, case),
            )
            print(f"{name}: followed", file=sys.stderr)
