"""The adapter for Megatron, on a stand-in that calls as its three functions do."""

import importlib.util
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

from recording import RecordedTest
from tables import as_read_by_the_server, computations, table_of

from perseus import client, library
from perseus.adapters import megatron

REAL = importlib.util.find_spec("megatron") is not None
sys.path.insert(0, str(Path(__file__).parent / "stand_ins"))

from megatron.core import parallel_state  # noqa: E402
from megatron.core.pipeline_parallel import schedules  # noqa: E402


def model(group=None, **config):
    return types.SimpleNamespace(config=types.SimpleNamespace(microbatch_group_size_per_vp_stage=group, **config))


_INTERLEAVED = megatron._INTERLEAVED


def _interleaved():
    return getattr(schedules, _INTERLEAVED)


def _1f1b():
    return schedules.forward_backward_pipelining_without_interleaving


def run(function, models, microbatches, **more):
    return function(
        forward_step_func=more.pop("forward_step_func", lambda iterator, model: "loss"),
        data_iterator=iter(()),
        model=models,
        num_microbatches=microbatches,
        seq_length=1,
        micro_batch_size=1,
        **more,
    )


class Megatron(RecordedTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(megatron.uninstall)
        schedules.ran.clear()

    def be(self, **ranks):
        self.restart()
        parallel_state.ranks = ranks
        megatron.uninstall()
        megatron.install()

    def test_1f1b(self):
        table = table_of("1f1b", 4, 6)
        for rank in range(4):
            with self.subTest(rank=rank):
                self.be(pipeline_model=(rank, 4))
                self.assertEqual(run(schedules.get_forward_backward_func(), [model()], 6), "losses")
                self.assertEqual(self.computations(), computations(table, rank))
                self.assertEqual(self.steps(), ["step_begin 0", "step_end"])
                self.assertEqual(self.options()["schedule"], "1f1b")

    def test_no_pipelining(self):
        self.be()
        run(schedules.get_forward_backward_func(), model(), 3)
        self.assertEqual(self.computations(), computations(table_of("1f1b", 1, 3), 0))

    def test_interleaved(self):
        for ranks, microbatches, chunks, group in ((4, 8, 2, 4), (2, 6, 3, 2), (2, 5, 2, 3), (4, 4, 2, 4)):
            for rank in range(ranks):
                with self.subTest(ranks=ranks, rank=rank, microbatches=microbatches, chunks=chunks, group=group):
                    self.be(pipeline_model=(rank, ranks))
                    run(schedules.forward_backward_pipelining_with_interleaving, [model(group)] * chunks, microbatches)
                    table = self.options()["action_table"]
                    self.assertEqual(self.computations(), computations(table, rank))
                    self.assertEqual(as_read_by_the_server(table), table)
                    if group == ranks and microbatches % ranks == 0:
                        self.assertEqual(table, table_of("interleaved-1f1b", ranks, microbatches, chunks))
                    self.assertEqual(self.options()["chunks"], str(chunks))

    def test_groups_are_of_pipeline_size_unless_configured(self):
        self.be(pipeline_model=(0, 2))
        with mock.patch.object(schedules, "forward_step"):
            iteration = megatron._Iteration(schedules, {})
            iteration.begin({"num_microbatches": 4, "model": [model(None)] * 2}, interleaved=True)
        self.assertEqual(iteration.table, schedules.get_schedule_table(4, 2, 2))

    def test_table_is_megatrons(self):
        for microbatches in range(1, 9):
            for chunks in (1, 2, 3):
                for group in range(1, microbatches + 1):
                    ours = megatron.schedule_table(microbatches, chunks, group)
                    self.assertEqual(ours, schedules.get_schedule_table(microbatches, chunks, group))

    def test_evaluation_and_steps_that_run_again(self):
        self.be(pipeline_model=(1, 2))
        train, evaluate = schedules.get_forward_backward_func(), schedules.get_forward_backward_func()
        run(evaluate, [model()], 2, forward_only=True)
        self.assertIsNone(client.current())
        run(train, [model()], 2)
        run(evaluate, [model()], 2, forward_only=True)
        run(train, [model()], 2)
        self.assertEqual([step for step in self.steps() if "begin" in step], ["step_begin 0", "step_begin 1", "step_begin 0"])
        self.assertEqual(self.computations()[-4:], computations(table_of("1f1b", 2, 2), 1))

    def test_place(self):
        self.be(pipeline_model=(1, 2), tensor_model=(1, 2), context=(2, 4), data=(0, 3))
        run(schedules.get_forward_backward_func(), [model()], 2)
        self.assertEqual(self.options()["degrees"], "3 2 8")
        self.assertEqual(self.options()["ranks"], "0 0 1 5")

    def without_state(self):
        """parallel_state as it is if the program passes its groups instead: each question is an AssertionError."""
        for name in [name for name in dir(parallel_state) if name.startswith("get_")]:
            self.enterContext(mock.patch.object(parallel_state, name, side_effect=AssertionError("not initialized")))

    def test_ranks_of_the_groups_that_are_passed(self):
        self.without_state()
        ranks = {"pp": (1, 2), "tp": (1, 2), "cp": (2, 4), "dp": (0, 3)}
        groups = types.SimpleNamespace(
            **{name: types.SimpleNamespace(rank=lambda r=r: r, size=lambda n=n: n) for name, (r, n) in ranks.items()}
        )
        for function in (schedules.forward_backward_pipelining_without_interleaving, _INTERLEAVED):
            with self.subTest(function):
                self.be()
                models = [model()] if callable(function) else [model(), model()]
                name = getattr(function, "__name__", function)
                for _ in range(2):
                    run(getattr(schedules, name), models, 4, pg_collection=groups)
                self.assertEqual((self.options()["degrees"], self.options()["ranks"]), ("3 2 8", "0 0 1 5"))
                table = self.options().get("action_table") or table_of("1f1b", 2, 4)
                self.assertEqual(self.computations(), 2 * computations(table, 1))

    def test_options_of_the_program_stay_where_ranks_cannot_be_read(self):
        self.without_state()
        place = {"rank": 9, "pp_degree": 4, "pp_rank": 1, "dp_degree": 2, "dp_rank": 1, "tp_degree": 2, "tp_rank": 1}
        megatron.install(server="http://host", job="j", **place)
        with mock.patch.object(schedules, "_pipeline", lambda _: (1, 4)):
            run(_interleaved(), [model(), model()], 4)
        options = self.options()
        self.assertEqual((options["server"], options["ranks"], options["degrees"]), ("http://host", "9 1 1 1", "2 4 2"))
        self.assertEqual(options["action_table"], table_of("interleaved-1f1b", 4, 4, 2))

    def test_no_job_where_ranks_are_not_known(self):
        """One line names what is missing; the rank goes on, only measured."""
        self.without_state()
        for models in ([model()], [model(), model()]):
            self.restart()
            megatron.uninstall()
            megatron.install(server="http://host")
            with self.assertLogs("perseus", "WARNING") as logged:
                for _ in range(2):
                    with mock.patch.object(schedules, "_pipeline", lambda _: (0, 2)):
                        self.assertEqual(run(_interleaved() if models[1:] else _1f1b(), models, 4), "losses")
            lines = [line for line in logged.output if "started" not in line and "from a thread" not in line]
            self.assertIn("no job is registered", lines[0])
            self.assertIn("install() needs dp_degree, pp_degree, tp_degree", lines[0])
            self.assertEqual(self.options()["server"], "")
            self.assertEqual(self.steps(), 2 * ["step_begin 0", "step_end"])

    def test_a_schedule_of_the_programs_own(self):
        """One line; no step is made of what it runs."""

        def get_forward_backward_func():
            def zero_bubble(*, num_microbatches, **_):
                for i in range(num_microbatches):
                    schedules._forward(lambda *_: "loss", model(), num_microbatches, i, None)
                    schedules.backward_step(None, None, None, None)
                return "losses"

            return zero_bubble

        megatron.install(server="http://host")
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(20):
                self.assertEqual(run(get_forward_backward_func(), [model()], 4), "losses")
        self.assertEqual(len(logged.output), 1)
        self.assertIn("20 computations outside of a step", logged.output[0])
        self.assertIn("get_forward_backward_func()", logged.output[0])
        self.assertIsNone(client.current())

    def test_options_of_a_second_install(self):
        megatron.install(job_name="first")
        megatron.install(job_name="second")
        run(_1f1b(), [model()], 2)
        self.assertEqual(self.options()["job_name"], "second")
        megatron.install(job_name="second")
        run(_1f1b(), [model()], 2)
        self.assertNotIn("stop", self.calls())
        megatron.install(job_name="third")
        run(_1f1b(), [model()], 2)
        self.assertEqual(self.options()["job_name"], "third")
        self.assertEqual(self.calls().count("stop"), 1)

    def test_a_second_install_leaves_a_client_of_the_program(self):
        client.start(job_name="mine")
        megatron.install()
        run(_1f1b(), [model()], 2)
        with self.assertLogs("perseus", "WARNING") as logged:
            megatron.install(job_name="other")
        self.assertIn("install() again with another job_name: ignored", logged.output[0])

    def test_the_batch_ramps_up(self):
        self.be(pipeline_model=(1, 2))
        for microbatches in (4, 4, 8, 8, 4):
            run(schedules.get_forward_backward_func(), [model()], microbatches)
        self.assertEqual(self.microbatches(), [4, 4, 8, 8, 4])
        self.assertEqual(self.computations()[-24:-8], computations(table_of("1f1b", 2, 8), 1))
        self.assertEqual(self.options()["microbatches"], "4")
        self.assertEqual(self.tables(), {})  # the schedule's name says it

    def test_an_interleaved_batch_ramps_up(self):
        self.be(pipeline_model=(1, 2))
        for microbatches in (4, 8, 8, 4):
            run(schedules.forward_backward_pipelining_with_interleaving, [model(2)] * 2, microbatches)
        self.assertEqual(self.microbatches(), [4, 8, 8, 4])
        self.assertEqual(self.options()["action_table"], table_of("interleaved-1f1b", 2, 4, 2))
        self.assertEqual(self.tables(), {8: table_of("interleaved-1f1b", 2, 8, 2)})

    def test_a_restart_within_the_process_registers_anew(self):
        self.be(pipeline_model=(1, 4))
        for _ in range(5):
            run(schedules.get_forward_backward_func(), [model()], 2)
        self.assertEqual(self.options()["degrees"], "1 4 1")
        parallel_state.ranks = {"pipeline_model": (0, 3)}
        with self.assertLogs("perseus", "INFO") as logged:
            for _ in range(5):
                run(schedules.get_forward_backward_func(), [model()], 2)
        self.assertEqual(self.options()["degrees"], "1 3 1")
        self.assertEqual(self.options()["ranks"].split()[2], "0")
        self.assertEqual(self.calls().count("stop"), 1)
        stopped = self.calls().index("stop")
        self.assertEqual(sum(call == "step_end" for call in self.calls()[:stopped]), 5)
        self.assertEqual(sum(call == "step_end" for call in self.calls()[stopped:]), 5)
        self.assertEqual(sum("registers anew" in line for line in logged.output), 1)

    def test_places_that_alternate_cost_few_registrations(self):
        """Two models with process groups of their own: stopping and starting in each step would stop training."""
        self.be(pipeline_model=(1, 4))
        for step in range(40):
            parallel_state.ranks = {"pipeline_model": (1, 4) if step % 2 == 0 else (0, 2)}
            run(schedules.get_forward_backward_func(), [model()], 2)
        self.assertLessEqual(self.calls().count("stop"), 1)
        parallel_state.ranks = {"pipeline_model": (2, 3)}
        for _ in range(4):
            run(schedules.get_forward_backward_func(), [model()], 2)
        self.assertEqual(self.options()["degrees"], "1 3 1")

    def test_a_state_that_is_being_set_up_again_changes_nothing(self):
        self.be(pipeline_model=(1, 2))
        run(schedules.get_forward_backward_func(), [model()], 2)
        with mock.patch.object(megatron, "_place", side_effect=AssertionError):
            run(schedules.get_forward_backward_func(), [model()], 2)
        run(schedules.get_forward_backward_func(), [model()], 2)
        self.assertEqual(self.calls().count("stop"), 0)
        self.assertEqual(len(self.microbatches()), 3)

    def test_asynchronous_exceptions_pass(self):
        """As PyThreadState_SetAsyncExc raises them: anywhere, and no Exception."""

        class Restart(BaseException):
            pass

        self.be(pipeline_model=(1, 2))
        run(schedules.get_forward_backward_func(), [model()], 2)
        with mock.patch.object(client, "_begin", side_effect=Restart), self.assertRaises(Restart):
            run(schedules.get_forward_backward_func(), [model()], 2)
        run(schedules.get_forward_backward_func(), [model()], 2)
        self.assertEqual(self.steps(), ["step_begin 0", "step_end"] * 3)

    def test_older_forward_step(self):
        """Without current_microbatch and vp_stage."""
        calls = []

        def forward_step(forward_step_func, data_iterator, model, num_microbatches, input_tensor, store, config):
            calls.append(model)

        def forward_backward(*, forward_step_func, data_iterator, model, num_microbatches, forward_only=False, **_):
            for _ in range(num_microbatches * len(model)):
                module.forward_step(None, None, None, 1, None, [], None)
                module.backward_step(None, None, None, None, None)
            return "losses"

        names = ("forward_backward_no_pipelining", "forward_backward_pipelining_without_interleaving")
        module = types.SimpleNamespace(
            forward_step=forward_step,
            backward_step=lambda input_tensor, output_tensor, grad, model_type, config: None,
            forward_backward_pipelining_with_interleaving=forward_backward,
            **dict.fromkeys(names, forward_backward),
        )
        parallel_state.ranks = {"pipeline_model": (1, 2)}
        megatron.install(module)
        run(module.forward_backward_pipelining_with_interleaving, [model(2)] * 2, 2)
        expected = [(0, 0), (1, 0), (0, 1), (1, 1)]
        forwards = [c[1:] for c in self.computations() if c[0] == "forward"]
        backwards = [c[1:] for c in self.computations() if c[0] == "backward"]
        self.assertEqual((forwards, backwards), (expected, [(m, 1 - c) for m, c in expected]))

    def test_a_cycle_is_reported(self):
        module = types.SimpleNamespace(
            **dict.fromkeys(megatron._FORWARD_BACKWARD, lambda **kwargs: "losses"),
            forward_step=lambda: None,
            backward_step=lambda: None,
        )
        megatron.install(module)
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(3):
                self.assertEqual(run(module.forward_backward_no_pipelining, [model()], 2), "losses")
        self.assertEqual(sum("does not call forward_step" in line for line in logged.output), 1)

    def test_combined_1f1b_is_not_counted(self):
        """It calls forward_step in its warm-up only."""
        module = types.SimpleNamespace(
            **dict.fromkeys(megatron._FORWARD_BACKWARD, lambda **kwargs: module.forward_step() or "losses"),
            forward_step=lambda: None,
            backward_step=lambda: None,
        )
        megatron.install(module)
        combined = model(group=2, overlap_moe_expert_parallel_comm=True)
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(2):
                run(module.forward_backward_pipelining_with_interleaving, [combined, combined], 2)
        self.assertEqual(self.computations(), [])
        self.assertEqual(sum("does not call forward_step" in line for line in logged.output), 1)
        self.assertEqual(self.options()["flags"], str(library.ADVICE_ONLY))  # the server waits for no profile of it
        run(module.forward_backward_pipelining_with_interleaving, [combined, combined], 2, forward_only=True)

    def test_exceptions_pass(self):
        def fail(iterator, model):
            raise FloatingPointError("not finite")

        self.be(pipeline_model=(1, 2))
        with self.assertRaises(FloatingPointError):
            run(schedules.get_forward_backward_func(), [model()], 2, forward_step_func=fail)
        self.assertEqual(self.calls()[-2:], ["end 0 0 0", "step_end"])

    def test_install_and_uninstall(self):
        before = dict(vars(schedules))
        first = megatron.install()
        self.assertIs(megatron.install(), first)
        megatron.uninstall()
        megatron.uninstall()
        self.assertEqual(vars(schedules), before)

    def test_no_megatron(self):
        with mock.patch.object(megatron, "_SCHEDULES", "megatron.gone"), self.assertLogs("perseus", "WARNING"):
            self.assertIsNone(megatron.install())
            megatron.uninstall()

    @unittest.skipUnless(REAL, "Megatron is not installed")
    def test_the_real_one_has_these_names(self):
        stand_ins = sys.path.pop(0)
        try:
            names = [name for name in sys.modules if name.partition(".")[0] == "megatron"]
            with mock.patch.dict(sys.modules):
                for name in names:
                    del sys.modules[name]
                real = importlib.import_module(megatron._SCHEDULES)
                for name in (*megatron._FORWARD_BACKWARD, "forward_step", "backward_step", "get_schedule_table"):
                    self.assertTrue(callable(getattr(real, name)))
                self.assertEqual(real.get_schedule_table(5, 2, 3), megatron.schedule_table(5, 2, 3))
        finally:
            sys.path.insert(0, stand_ins)


if __name__ == "__main__":
    unittest.main()
