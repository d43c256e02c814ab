"""The adapter for torch.distributed.pipelining, on a stand-in that calls as each of its schedules does."""

import copy
import os
import pickle
import re
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

from recording import RecordedTest
from stand_ins import pipelining
from tables import as_read_by_the_server, computations, table_of

from perseus import client, library
from perseus.adapters import torch_pipelining

TABLES = Path(__file__).parent / "tables"


def loss(*_):
    return 0


def as_it_runs(table):
    """PyTorch does not split the first stage's backward: its I does nothing, its W is all of it."""
    rows = [[cell for cell in row.split(",") if not re.fullmatch("0I[0-9]+", cell)] for row in table.splitlines()]
    return "".join(",".join(re.sub("^0W", "0B", cell) for cell in row) + "\n" for row in rows)


def v_shaped(ranks, rank):
    return [rank, 2 * ranks - 1 - rank]


def looped(ranks, rank):
    return [rank, ranks + rank]


def stages(indices, ranks, rank):
    return [pipelining.PipelineStage(index, ranks * len(indices), rank, ranks) for index in indices]


def single(kind, ranks, rank, microbatches, loss_fn=loss):
    return kind(stages([rank], ranks, rank)[0], microbatches, loss_fn)


def multi(kind, table, indices, ranks, rank, microbatches, format="compute_only"):
    schedule = kind(stages(indices(ranks, rank), ranks, rank), microbatches, loss)
    schedule._load_csv(table, **({"format": format} if hasattr(schedule, "_comp_type_to_function_map") else {}))
    return schedule


class Schedules(RecordedTest):
    def follow(self, schedule, expected):
        """A step makes the expected calls, and runs what it runs without the adapter."""
        torch_pipelining.install(schedule)
        result = schedule.step("input", target="target")
        self.assertEqual(self.computations(), expected)
        all_stages = torch_pipelining._stages(schedule)
        self.assertEqual(result, "output" if any(stage.is_last for stage in all_stages) else None)
        self.assertEqual(sum(len(stage.done) for stage in all_stages), len(expected))
        self.assertEqual(self.steps(), ["step_begin 0", "step_end"])
        client.stop()

    def test_single_stage_schedules(self):
        for kind, name in ((pipelining.ScheduleGPipe, "gpipe"), (pipelining.Schedule1F1B, "1f1b")):
            for rank in range(4):
                with self.subTest(name, rank=rank):
                    self.restart()
                    table = table_of(name, 4, 8)
                    self.follow(single(kind, 4, rank, 8), computations(table, rank))
                    options = self.options()
                    if name == "gpipe":
                        self.assertEqual(as_read_by_the_server(options["action_table"]), table)
                    else:  # its table is wrong
                        self.assertEqual((options.get("action_table"), options["schedule"]), (None, name))
                    self.assertEqual((options["microbatches"], options["chunks"]), ("8", "1"))
                    self.assertEqual((options["ranks"], options["degrees"]), (f"0 0 {rank} 0", "1 4 1"))

    def test_multiple_stage_schedules(self):
        for kind, name, indices, ranks, microbatches in (
            (pipelining.PipelineScheduleMulti, "interleaved-1f1b", looped, 2, 4),
            (pipelining.ScheduleInterleaved1F1B, "interleaved-1f1b", looped, 4, 8),
            (pipelining.ScheduleInterleavedZeroBubble, "zero-bubble", lambda ranks, rank: [rank], 4, 8),
            (pipelining.ScheduleZBVZeroBubble, "zbv", v_shaped, 4, 8),
            (pipelining.ScheduleDualPipeV, "dualpipev", v_shaped, 4, 10),
        ):
            chunks = len(indices(ranks, 0))
            pytorchs = table_of(name, ranks, microbatches, chunks)
            table = as_it_runs(pytorchs)
            for rank in range(ranks):
                with self.subTest(name, rank=rank):
                    self.restart()
                    schedule = multi(kind, pytorchs, indices, ranks, rank, microbatches)
                    self.follow(schedule, computations(table, rank))
                    self.assertEqual(as_read_by_the_server(self.options()["action_table"]), table)
                    self.assertEqual(self.options()["chunks"], str(chunks))

    def test_published_dualpipev_with_overlaps(self):
        table = (TABLES / "dualpipev_4_ranks_10_microbatches.csv").read_text()
        for rank in range(4):
            with self.subTest(rank=rank):
                self.restart()
                schedule = multi(pipelining.ScheduleDualPipeV, table, v_shaped, 4, rank, 10)
                self.follow(schedule, computations(as_it_runs(table), rank))
                exported = self.options()["action_table"]
                self.assertIn("(0F7;7B3)OVERLAP_F_B", exported)
                self.assertEqual(as_read_by_the_server(exported), as_it_runs(table_of("dualpipev", 4, 10, 2)))

    def test_published_table_with_communication(self):
        table = (TABLES / "interleaved_2_ranks_2_microbatches_with_communication.csv").read_text()
        for rank in range(2):
            self.restart()
            schedule = multi(
                pipelining._PipelineScheduleRuntime, table, looped, 2, rank, 2, format="compute_comms"
            )
            self.follow(schedule, computations(table, rank))
            exported = self.options()["action_table"]
            self.assertNotIn("SEND", exported)
            self.assertEqual(as_read_by_the_server(exported), table_of("interleaved-1f1b", 2, 2, 2))


    def test_loss_is_in_the_last_forward(self):
        schedule = single(pipelining.Schedule1F1B, 2, 1, 2, lambda *_: client.begin("load"))
        torch_pipelining.install(schedule)
        schedule.step()
        forward, load = (library.INSTRUCTIONS.index(name) for name in ("forward", "load"))
        calls = self.calls()
        at = calls.index(f"begin {forward} 0 0")
        self.assertEqual(calls[at : at + 3], [f"begin {forward} 0 0", f"begin {load} -1 -1", f"end {forward} 0 0"])

    def test_a_forward_without_a_loss_ends(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 1, 2)
        schedule._maybe_compute_loss = lambda *_: None
        torch_pipelining.install(schedule)
        del schedule._maybe_compute_loss  # a schedule that never calls it
        schedule.step()
        self.assertEqual(len(self.computations()), 4)  # each ends before the next

    def test_an_own_weight_gradient_splits_the_first_stage(self):
        table = table_of("zbv", 2, 4, 2)
        schedule = multi(pipelining.ScheduleZBVZeroBubble, table, v_shaped, 2, 0, 4)
        schedule._stages[0].dw_builder = lambda: None
        self.follow(schedule, computations(table, 0))
        self.assertEqual(as_read_by_the_server(self.options()["action_table"]), table)


class Functions(RecordedTest):
    """That programs register in place of the stages' methods."""

    def schedule(self):
        table = (TABLES / "dualpipev_4_ranks_10_microbatches.csv").read_text()
        return table, multi(pipelining.ScheduleDualPipeV, table, v_shaped, 4, 0, 10)

    def check(self, table, schedule):
        """All computations have their place; a forward that overlaps ends at once, and its backward sets the clock."""
        schedule.step()
        begun = [line[6:] for line in self.calls() if line.startswith("begin ")]
        expected = computations(as_it_runs(table), 0)
        self.assertEqual(len(begun), len(expected))
        for line, (instruction, microbatch, chunk) in zip(begun, expected):
            self.assertEqual(line, f"{library.INSTRUCTIONS.index(instruction)} {microbatch} {chunk}")
        calls = self.calls()
        at = calls.index("begin 0 7 0")  # (0F7;7B3): stage 7 is chunk 1
        self.assertEqual(calls[at : at + 4], ["begin 0 7 0", "end 0 7 0", "set_speed 1 3 1", "begin 1 3 1"])
        overlapped = sum("OVERLAP" in cell for cell in table.splitlines()[0].split(","))
        self.assertEqual(sum(line.startswith("set_speed") for line in calls), len(expected) - overlapped)
        self.assertEqual(sum(len(stage.done) for stage in schedule._stages), len(expected))

    def test_overlap_registered_before(self):
        table, schedule = self.schedule()
        schedule.register_custom_function(pipelining._ComputationType.OVERLAP_F_B, pipelining.overlap_callback)
        torch_pipelining.install(schedule)
        self.check(table, schedule)

    def test_overlap_registered_afterwards(self):
        table, schedule = self.schedule()
        torch_pipelining.install(schedule)
        schedule.register_custom_function(pipelining._ComputationType.OVERLAP_F_B, pipelining.overlap_callback)
        self.check(table, schedule)

    def test_all_actions_registered(self):
        table = table_of("zbv", 2, 4, 2)
        schedule = multi(pipelining.ScheduleZBVZeroBubble, table, v_shaped, 2, 1, 4)
        torch_pipelining.install(schedule)
        ran = []
        for kind in "FIWB":
            schedule.register_custom_function(
                pipelining._ComputationType(kind), lambda action, context: ran.append(str(action))
            )
        schedule.register_custom_function(pipelining._ComputationType.UNSHARD, lambda action, context: None)
        schedule.step()
        self.assertEqual(self.computations(), computations(table, 1))
        self.assertEqual(",".join(ran), table.splitlines()[1])


class Life(RecordedTest):
    def test_evaluation_is_left_alone(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 0, 4)
        torch_pipelining.install(schedule)
        schedule.eval("input")
        self.assertIsNone(client.current())  # it starts in the first training step
        schedule.step("input")
        schedule.eval("input")
        self.assertEqual(self.steps(), ["step_begin 0", "step_end", "step_begin 1", "step_end"])

    def test_evaluation_before_training(self):
        schedule = single(pipelining.Schedule1F1B, 2, 0, 4)
        torch_pipelining.install(schedule)
        for _ in range(5):
            schedule.eval(arg_mbs=[()] * 4)
        self.assertIsNone(client.current())
        schedule.step("input")
        self.assertEqual(self.steps(), ["step_begin 0", "step_end"])
        self.assertEqual(self.computations(), computations(table_of("1f1b", 2, 4), 0))

    def test_batches_that_the_program_splits(self):
        """step(arg_mbs=...), or the function within step()."""
        for kind in (pipelining.Schedule1F1B, pipelining.ScheduleGPipe):
            self.restart()
            schedule = single(kind, 2, 0, 4)
            torch_pipelining.install(schedule)
            schedule.step(arg_mbs=[()] * 4, kwarg_mbs=[{}] * 4)
            for _ in range(20):
                schedule._step_microbatches([()] * 4, [{}] * 4, True)
            self.assertEqual(self.steps(), 21 * ["step_begin 0", "step_end"])
            self.assertEqual(len(self.computations()), 21 * 8)

    def test_an_order_of_the_programs_own(self):
        """It is not registered under the name of PyTorch's."""

        class Backwards(pipelining.Schedule1F1B):
            def _step_microbatches(self, arg_mbs, kwarg_mbs, return_outputs):
                for i in reversed(range(self._n_microbatches)):
                    self._stage.forward_one_chunk(i, ())
                    self._stage.backward_one_chunk(i)

        schedule = single(Backwards, 2, 0, 4)
        torch_pipelining.install(schedule, server="http://host")
        with self.assertLogs("perseus", "WARNING") as logged:
            schedule.step()
        self.assertIn("install() needs schedule or action_table", logged.output[0])
        options = self.options()
        self.assertEqual((options["server"], options.get("schedule"), options.get("action_table")), ("", None, None))
        self.assertEqual(self.computations()[:2], [("forward", 3, 0), ("backward", 3, 0)])

    def test_a_copy_is_not_followed(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 0, 4)
        torch_pipelining.install(schedule)
        schedule.step()
        followed = len(self.calls())
        for other in (copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))):
            other._stage.done.clear()
            other.step()
            self.assertEqual(len(other._stage.done), 8)
            self.assertIsNot(other._stage, schedule._stage)
        self.assertEqual(len(schedule._stage.done), 8)
        self.assertEqual(len(self.calls()), followed)

    def test_uninstall_leaves_a_shared_stage_to_the_other_schedule(self):
        first, second = single(pipelining.ScheduleGPipe, 2, 0, 4), single(pipelining.Schedule1F1B, 2, 0, 4)
        second._stage = first._stage
        before = dict(vars(first._stage))
        torch_pipelining.install(first)
        torch_pipelining.install(second)
        torch_pipelining.uninstall(first)
        second.step()
        self.assertEqual(len(self.computations()), 8)
        torch_pipelining.uninstall(second)
        first._stage.done, first._stage.has_backward = before["done"], False
        self.assertEqual(vars(first._stage), before)

    def test_two_schedules(self):
        """The client follows the first; the other one runs at the highest clock, as evaluation does."""
        first, second = (single(pipelining.ScheduleGPipe, 2, 0, 4) for _ in range(2))
        for schedule in (first, second):
            torch_pipelining.install(schedule)
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(2):
                first.step()
                second.step()
        self.assertEqual([line for line in self.steps() if "begin" in line], 2 * ["step_begin 0", "step_begin 1"])
        lines = [line for line in logged.output if "trains, too" in line]
        self.assertEqual(len(lines), 1)

    def test_a_schedule_in_place_of_another(self):
        for _ in range(3):
            schedule = single(pipelining.ScheduleGPipe, 2, 0, 4)
            torch_pipelining.install(schedule)
            schedule.step()
            schedule.step()
        self.assertEqual([line for line in self.steps() if "begin" in line], 6 * ["step_begin 0"])

    def test_a_schedule_that_is_built_anew(self):
        """Of the same stages, and without install(): one line."""
        schedule = single(pipelining.ScheduleGPipe, 2, 0, 4)
        torch_pipelining.install(schedule)
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(20):
                pipelining.ScheduleGPipe(schedule._stage, 4, loss).step()
        self.assertEqual(len(logged.output), 1)
        self.assertIn("no training step of ScheduleGPipe was seen in 20 computations outside of a step", logged.output[0])
        self.assertIn("a schedule that is built anew", logged.output[0])

    def test_the_programs_exceptions_pass(self):
        schedule = single(pipelining.Schedule1F1B, 2, 1, 4)
        torch_pipelining.install(schedule)
        schedule._stage.fails_at = ("B", 2)
        with self.assertRaises(FloatingPointError):
            schedule.step()
        self.assertEqual(self.computations()[-1], ("backward", 2, 0))
        self.assertEqual(self.calls()[-2:], ["end 1 2 0", "step_end"])

    def test_twice_is_once_and_uninstall_puts_all_back(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 0, 4)
        before = dict(vars(schedule)), dict(vars(schedule._stage))
        first = torch_pipelining.install(schedule)
        self.assertIs(torch_pipelining.install(schedule), first)
        another = single(pipelining.ScheduleGPipe, 2, 0, 4)
        another._stage = schedule._stage  # stages of two schedules
        torch_pipelining.install(another)
        schedule.step()
        self.assertEqual(len(self.computations()), 8)
        torch_pipelining.uninstall(another)
        torch_pipelining.uninstall(schedule)
        torch_pipelining.uninstall(schedule)
        schedule._stage.done.clear()
        schedule._stage.has_backward = False
        self.assertEqual((vars(schedule), vars(schedule._stage)), before)

    def test_later_wrappers_of_others_stay(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 0, 4)
        torch_pipelining.install(schedule)
        ours, seen = schedule._stage.forward_one_chunk, []
        schedule._stage.forward_one_chunk = lambda *a, **k: seen.append(1) or ours(*a, **k)
        torch_pipelining.uninstall(schedule)
        schedule.step()
        self.assertEqual(len(seen), 4)

    def test_options_given_come_first(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 1, 4)
        torch_pipelining.install(schedule, server="http://host", job="j", dp_degree=3, rank=4, facts={"model": "m"})
        schedule.step()
        options = self.options()
        self.assertEqual((options["server"], options["degrees"]), ("http://host", "3 2 1"))
        self.assertEqual(options["facts"], "framework=torch.distributed.pipelining\nmodel=m")

    def test_options_of_the_environment_come_first(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 1, 4)
        with mock.patch.dict(os.environ, PERSEUS_FACTS="model=m", PERSEUS_DP_DEGREE="3"):
            torch_pipelining.install(schedule)
            schedule.step()
        self.assertEqual(self.options()["facts"], "framework=torch.distributed.pipelining\nmodel=m")
        self.assertEqual(self.options()["degrees"], "3 2 1")

    def test_a_running_client_is_taken(self):
        client.start(job_name="mine")
        schedule = single(pipelining.ScheduleGPipe, 2, 1, 4)
        torch_pipelining.install(schedule)
        schedule.step()
        self.assertEqual(self.options()["job_name"], "mine")
        self.assertEqual(len(self.computations()), 8)

    def test_another_version_without_stages_is_inert(self):
        class Schedule:
            def step(self):
                return "stepped"

        with self.assertLogs("perseus", "WARNING"):
            torch_pipelining.install(Schedule())
        schedule = Schedule()
        torch_pipelining.install(schedule)
        self.assertEqual(schedule.step(), "stepped")

    def test_renamed_method(self):
        schedule = single(pipelining.ScheduleGPipe, 2, 1, 4)
        schedule._stage = types.SimpleNamespace(
            stage_index=1, is_last=True, forward_one_chunk=lambda *a, **k: None, group_size=2, group_rank=1
        )
        with self.assertLogs("perseus", "WARNING") as logged:
            torch_pipelining.install(schedule)
        self.assertIn("has no backward_one_chunk in this version", logged.output[0])


class Places(RecordedTest):
    """Which pipeline a rank is in, by the ranks of its pipeline's process group."""

    def place(self, rank, world, ranks, group="of the pipeline", **options):
        distributed = types.SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            get_rank=lambda: rank,
            get_world_size=lambda: world,
            get_process_group_ranks={"of the pipeline": ranks}.__getitem__,  # PyTorch 2.6 does not know None either
            distributed_c10d=types.SimpleNamespace(_get_default_store=lambda: mock.Mock()),
        )
        schedule = single(pipelining.ScheduleGPipe, len(ranks), ranks.index(rank), 4)
        schedule._stage.group = group
        with mock.patch.dict(sys.modules, {"torch.distributed": distributed}):
            torch_pipelining.install(schedule, **options)
            schedule.step()
        options = self.options()
        client.stop()
        return options["ranks"], options["degrees"]

    def test_pipeline_outermost(self):
        self.assertEqual(self.place(5, 8, [1, 3, 5, 7]), ("5 1 2 0", "2 4 1"))

    def test_pipeline_innermost(self):
        self.assertEqual(self.place(6, 8, [4, 5, 6, 7]), ("6 1 2 0", "2 4 1"))

    def test_pipeline_between(self):
        self.assertEqual(self.place(6, 8, [4, 6]), ("6 2 1 0", "4 2 1"))

    def test_tensor_parallel_ranks(self):
        """Innermost, as in torchtitan; the groups do not show them."""
        self.assertEqual(self.place(6, 8, [2, 6], tp_degree=2), ("6 1 1 0", "2 2 2"))
        self.assertEqual(self.place(7, 8, [3, 7], tp_degree="2"), ("7 1 1 1", "2 2 2"))
        with mock.patch.dict(os.environ, PERSEUS_TP_DEGREE="2"):
            self.assertEqual(self.place(7, 8, [3, 7]), ("7 1 1 1", "2 2 2"))

    def test_one_pipeline(self):
        self.assertEqual(self.place(1, 2, [0, 1]), ("1 0 1 0", "1 2 1"))

    def test_one_pipeline_of_all_ranks(self):
        self.assertEqual(self.place(1, 2, [0, 1], group=None), ("1 0 1 0", "1 2 1"))


class RealTorch(RecordedTest):
    """The names that the adapter relies on, where torch is installed."""

    def test_names(self):
        try:
            from torch.distributed.pipelining import schedules, stage
        except ImportError as error:
            self.skipTest(f"torch is not here: {error}")
        for name in ("forward_one_chunk", "backward_one_chunk", "backward_weight_one_chunk"):
            self.assertTrue(callable(getattr(stage._PipelineStageBase, name)))
        stand_in = pipelining._Action.from_str
        for text in ("2F0", "1UNSHARD", "(0F7;7B3)OVERLAP_F_B"):
            self.assertEqual(str(schedules._Action.from_str(text)), str(stand_in(text)))


if __name__ == "__main__":
    unittest.main()
