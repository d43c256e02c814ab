"""perseus.client: its calls of the library, and that none of its errors reaches the training loop."""

import logging
import logging.config
import os
import signal
import subprocess
import sys
import threading
import types
import unittest
from unittest import mock

from recording import RecordedTest

from perseus import client, job_id, measure
from perseus.adapters import plain
from perseus.client import controller, profiler


class Number:
    """As numpy's."""

    def __index__(self):
        return 5


class Incomparable:
    """As an array of numpy."""

    def __eq__(self, other):
        raise ValueError("the truth value is ambiguous")


class Model:
    """Of a loop that plain.py follows."""


class Preempted(Exception):
    pass


class Holder:
    """Of handlers that are no functions."""

    def handle(self, number, frame):
        raise Preempted

    __call__ = handle


def raises_preempted(*_):
    raise Preempted


class Calls(RecordedTest):
    def test_paper_listing(self):
        client.start(server="http://host:7787")
        for name in ("forward", "backward"):
            controller.set_speed(name)
            profiler.begin(name)
            profiler.end(name)
        self.assertEqual(
            self.calls(),
            ["set_speed 0 -1 -1", "begin 0 -1 -1", "end 0 -1 -1", "set_speed 1 -1 -1", "begin 1 -1 -1", "end 1 -1 -1"],
        )

    def test_microbatch_and_chunk(self):
        client.start()
        controller.set_speed("forward", 3)
        profiler.begin("input_gradient", microbatch=2, chunk=1)
        profiler.end("weight_gradient", Number(), None)
        self.assertEqual(self.calls(), ["set_speed 0 3 -1", "begin 2 2 1", "end 3 5 -1"])

    def test_functions_taken_before_start_work(self):
        begin, set_speed = profiler.begin, controller.set_speed
        begin("forward")
        client.start()
        begin("forward")
        set_speed("forward")
        client.stop()
        begin("forward")
        self.assertEqual(self.calls(), ["begin 0 -1 -1", "set_speed 0 -1 -1", "stop"])

    def test_steps(self):
        client.start()
        client.on_step_begin()
        client.on_step_end()
        client.on_step_begin("evaluate")
        client.on_step_end()
        self.assertEqual(self.calls(), ["step_begin 0", "step_end", "step_begin 1", "step_end"])

    def test_wrong_calls_are_logged_once(self):
        client.start()
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(3):
                for call in (controller.set_speed, profiler.begin, profiler.end, client.on_instruction_begin):
                    call("p2p")
                    call(["forward"])
                    call("forward", "first")
                    call("forward", 2**70)
        self.assertLessEqual(len(logged.output), 4)
        self.assertIn("unknown instruction 'p2p' is ignored", logged.output[0])

    def test_what_a_signals_handler_raises_passes(self):
        """Else the program would not learn of it: a paced job waits in on_step_begin(), so most signals come there."""
        client.start()
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, raises_preempted))
        torch = types.SimpleNamespace(is_grad_enabled=lambda: grad)
        with mock.patch.object(client, "_step_begin", lambda *_: signal.raise_signal(signal.SIGUSR1)):
            with mock.patch.dict(sys.modules, {"torch": torch}):
                for grad in (True, False):
                    loop = plain.Loop(Model(), {"microbatches": 1})
                    for call in (client.on_step_begin, loop.before_forward, loop.before_evaluation_batch):
                        with self.assertRaises(Preempted):
                            call()
        self.assertEqual(client._said, set())

    def test_it_passes_from_every_call(self):
        client.start()
        raising = lambda *_: signal.raise_signal(signal.SIGUSR1)  # noqa: E731
        calls = {
            "_set_speed": controller.set_speed, "_begin": profiler.begin, "_end": profiler.end,
            "_step_end": lambda _: client.on_step_end(), "say_once": lambda _: profiler.begin(["no name"]),
        }  # fmt: skip
        for handler in (raises_preempted, lambda number, frame: raises_preempted(), Holder().handle, Holder()):
            self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
            for name, call in calls.items():
                with mock.patch.object(client, name, raising), self.assertRaises(Preempted):
                    call("forward")
            with mock.patch.object(client, "_begin", raising), self.assertRaises(Preempted):
                client.on_instruction_begin("forward")
        self.assertEqual(client._said, set())

    def test_an_error_of_a_function_that_got_a_frame_is_swallowed(self):
        client.start()

        def fail(*_):
            raise ValueError(sys._getframe())

        with mock.patch.object(client, "_begin", fail), self.assertLogs("perseus", "WARNING"):
            profiler.begin("forward")

    def test_a_kind_that_cannot_be_compared_is_ignored(self):
        client.start()
        with self.assertLogs("perseus", "WARNING") as logged:
            client.on_step_begin(Incomparable())
        self.assertEqual(len(logged.output), 1)
        self.assertEqual(self.calls(), [])

    def test_threads_may_call(self):
        client.start()
        threads = [threading.Thread(target=controller.set_speed, args=("forward", i)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.calls()), [f"set_speed 0 {i} -1" for i in range(8)])


class Starting(RecordedTest):
    def test_options_arrive(self):
        client.init(
            server="http://host:7787", token="t", job="j", job_name="n", facts={"model": "gpt"}, profile="p",
            schedule="1f1b", microbatches=8, chunks=2, rank=5, dp_degree=2, pp_degree=4, device="none",
            accelerator="a", helper="/h", ca_file="/c", blocking_power_w=75, transfer_latency_s=0.001, start_limit_s=1,
            report_interval_s=3, advice_only=True, no_energy=True,
        )  # fmt: skip
        self.assertEqual(
            self.options(),
            {
                "server": "http://host:7787", "token": "t", "job": "j", "job_name": "n", "facts": "model=gpt", "profile": "p",
                "schedule": "1f1b", "microbatches": "8", "chunks": "2", "ranks": "5 1 2 0", "degrees": "2 4 1",
                "device": "none", "accelerator": "a", "helper": "/h", "ca_file": "/c", "numbers": "75 0.001 1 3", "flags": "3",
            },
        )  # fmt: skip

    def test_log_comes_from_any_thread(self):
        with self.assertLogs("perseus", "INFO") as logged:
            client.start()
        self.assertEqual(logged.output, ["INFO:perseus:started", "WARNING:perseus:from a thread: \xe9 \ufffd"])

    def test_once(self):
        first = client.start()
        self.assertIs(client.start(), first)
        client.stop()
        client.stop()
        self.assertFalse(first.active)
        self.assertTrue(client.start().active)
        self.assertEqual(self.calls(), ["stop"])

    def test_a_signals_handler_stops_it_while_it_starts_or_stops(self):
        for changed in ("_call", "_call_nothing"):
            with self.subTest(changed):
                self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, lambda *_: client.stop()))
                change = getattr(client, changed)

                def interrupted(*arguments, change=change, changed=changed):
                    setattr(client, changed, change)
                    signal.raise_signal(signal.SIGUSR1)
                    change(*arguments)

                with mock.patch.object(client, changed, interrupted):
                    client.start()
                    client.stop()
                self.assertIsNone(client.current())
                profiler.begin("forward")
                self.assertEqual(set(self.calls()), {"stop"})

    def test_a_signals_handler_interrupts_the_wait_for_the_server(self):
        """Its exception comes at once, and the client starts all the same: the program may train on."""
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, raises_preempted))
        answers, run = threading.Event(), client.Client._run

        def slow(*arguments):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)  # as most signals of other processes
            self.assertTrue(answers.wait(60))
            run(*arguments)

        with mock.patch.object(client.Client, "_run", slow), self.assertRaises(Preempted):
            client.start()
        self.assertEqual((client.current().active, client.current().reason), (False, "starting"))
        with self.assertLogs("perseus", "INFO"):
            answers.set()
            client.current()._settled.wait()
        self.assertTrue(client.current().active)
        client.stop()
        self.assertEqual(self.calls(), ["stop"])

    def test_one_that_comes_before_leaves_no_client(self):
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, raises_preempted))
        with mock.patch.object(client.library, "load", lambda: signal.raise_signal(signal.SIGUSR1)):
            with self.assertRaises(Preempted):
                client.start()
        self.assertIsNone(client.current())
        self.assertTrue(client.start().active)

    def test_without_another_thread(self):
        error = RuntimeError("can't start new thread")
        with mock.patch.object(threading.Thread, "start", side_effect=error):
            self.assertTrue(client.start().active)

    def test_a_log_that_raises(self):
        def fail(record):
            raise RuntimeError(record.getMessage())

        handler = logging.Handler()
        handler.emit = fail
        client.log.addHandler(handler)
        self.addCleanup(client.log.removeHandler, handler)
        self.assertTrue(client.start().active)
        profiler.begin("no name")
        client.stop()
        self.assertFalse(client.start(microbatches="many").active)

    def test_a_logger_that_the_program_disabled_meanwhile(self):
        client.start()
        logging.config.dictConfig({"version": 1})
        self.assertTrue(client.log.disabled)
        with self.assertLogs("perseus", "WARNING"):
            profiler.begin("no name")

    def test_wrong_options_are_inert(self):
        with self.assertLogs("perseus", "ERROR") as logged:
            started = client.start(microbatches="many")
        self.assertIn("option microbatches: 'many' is no whole number", logged.output[0])
        self.assertEqual((started.active, started.job, started.statistics()), (False, "", {}))
        self.assertIn("microbatches", started.status()["error"])
        self.assertFalse(started.time_with_cuda(0))
        profiler.begin("forward")
        self.assertEqual(self.calls(), [])

    def test_a_wrong_variable_is_named_once_and_ignored(self):
        with mock.patch.dict(os.environ, PERSEUS_MICROBATCHES="abc"), self.assertLogs("perseus", "WARNING") as logged:
            self.assertTrue(client.start().active)
            client.stop()
            client.start(server="http://host")
        self.assertEqual([line for line in logged.output if "abc" in line], [
            "WARNING:perseus:PERSEUS_MICROBATCHES is 'abc', ignored: option microbatches: 'abc' is no whole number of at most 2147483647"
        ])
        self.assertEqual(self.options()["server"], "http://host")
        with mock.patch.dict(os.environ, PERSEUS_MICROBATCHES="abc", PERSEUS_STRICT="1"), self.assertRaises(TypeError):
            client.stop()
            client.start()

    def test_strict(self):
        with mock.patch.dict(os.environ, PERSEUS_STRICT="1"), self.assertRaises(TypeError):
            client.start(microbatches="many")
        self.assertIsNone(client.current())

    def test_disabled(self):
        with mock.patch.dict(os.environ, PERSEUS_DISABLE="1"):
            self.assertFalse(client.start().active)
        self.assertEqual(self.calls(), [])

    def test_statistics_and_status(self):
        started = client.start()
        statistics = started.statistics()
        self.assertEqual((statistics["state"], statistics["iteration"], statistics["server_reached"]), ("planned", 7, 1))
        self.assertNotIn("size", statistics)
        self.assertEqual(started.status(), {"state": "planned"})
        self.assertEqual(started.job, "job-1")
        self.assertTrue(started.time_with_cuda(0x1230))
        started.time_with(lambda: 42)
        self.assertEqual(self.calls(), ["time_with_cuda 0x1230", "time_with 42"])

    def test_process_exit_stops_it_and_a_forked_child_does_not(self):
        program = (
            "import os\nfrom perseus import client\nclient.start()\n"
            "child = os.fork()\n"
            "if child == 0: raise SystemExit(client.current() is not None)\n"
            "raise SystemExit(os.waitpid(child, 0)[1] != 0)"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
        self.assertEqual(self.calls(), ["stop"])


    def test_a_forked_child_may_start_its_own(self):
        program = (
            "import os\nfrom perseus import client\nclient.start()\n"
            "if os.fork() == 0: raise SystemExit(not client.start(job_name='mine').active)\n"
            "raise SystemExit(os.wait()[1] != 0)"
        )
        subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.DEVNULL)
        self.assertEqual((self.calls(), self.options()["job_name"]), (["stop", "stop"], "mine"))


class Zeus(RecordedTest):
    def test_code_written_for_zeus(self):
        self.enterContext(mock.patch.dict(os.environ, PERSEUS_JOB="j"))  # where there is no torch.distributed
        optimizer = client.PipelineFrequencyOptimizer(
            rank=5, dp_rank=1, pp_rank=2, tp_rank=0, device_id=1, dp_degree=2, pp_degree=4, tp_degree=1, world_size=8,
            server_url="http://host:7787", job_metadata="gpt3-xl",
        )  # fmt: skip
        options = self.options()
        self.assertEqual((options["ranks"], options["degrees"], options["device"]), ("5 1 2 0", "2 4 1", "cuda:1"))
        self.assertEqual((options["profile"], options["job_name"]), ("gpt3-xl", "gpt3-xl"))
        optimizer.on_step_begin()
        optimizer.on_instruction_begin("forward")
        optimizer.on_instruction_end("forward")
        optimizer.on_step_end()
        self.assertEqual(
            self.calls(), ["step_begin 0", "set_speed 0 -1 -1", "begin 0 -1 -1", "end 0 -1 -1", "step_end"]
        )

    def test_device_ids_count_visible_devices(self):
        self.assertEqual(client._device_of_id(1), "cuda:1")


class Store(dict):
    """torch.distributed's, as far as it is used."""

    def set(self, key, value):
        self[key] = value.encode()

    def check(self, keys):
        return all(key in self for key in keys)


class OldStore(Store):
    check = property()  # has none

    def wait(self, keys, timeout):
        threading.Event().wait(timeout.total_seconds())
        if any(key not in self for key in keys):
            raise RuntimeError("Socket Timeout")


class JobId(RecordedTest):
    def as_rank(self, rank, store, **options):
        distributed = types.SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            get_rank=lambda: rank,
            distributed_c10d=types.SimpleNamespace(_get_default_store=lambda: store),
        )
        client.stop()
        job_id._starts = 0  # each call is another process
        with mock.patch.dict(sys.modules, {"torch.distributed": distributed}):
            return client.start(**{"server": "http://host", "pp_degree": 4, "rank": rank, **options})

    def wait_until(self, condition):
        while not condition():  # for as long as the test's own limit is
            threading.Event().wait(0.01)

    def test_ranks_learn_it_from_rank_0(self):
        store = Store()
        self.as_rank(0, store)
        self.assertNotIn("job", self.options())
        self.as_rank(3, store)
        self.assertEqual(self.options()["job"], "job-1")

    def test_it_may_come_late(self):
        for store in (Store(), OldStore()):
            with self.subTest(type(store).__name__):
                self.restart()
                self.come_late(store)

    def come_late(self, store):
        with mock.patch.dict(os.environ, PERSEUS_RECORDING_JOB=""):
            first = self.as_rank(0, store)  # the server is not there
        self.assertEqual(store, {})
        self.restart()
        last = self.as_rank(3, store, start_limit_s=0)
        self.assertEqual((last.active, last.reason, self.options()), (False, "waiting for the job's id", {}))
        profiler.begin("forward")
        self.assertEqual(self.calls(), [])
        store.set("perseus/job/1", "job-2")
        self.wait_until(lambda: last.active)
        self.assertEqual(last.reason, "")
        profiler.begin("forward")
        self.assertEqual(self.options()["job"], "job-2")
        self.assertIn("begin 0 -1 -1", self.calls())
        self.assertTrue(first.stopped.is_set())

    def test_rank_0_sends_the_job_once_it_is_known(self):
        store = Store()
        rendezvous = job_id.Rendezvous()
        rendezvous._store, rendezvous._rank = store, 0
        late = types.SimpleNamespace(job="", stopped=threading.Event())
        with mock.patch.object(job_id, "_LONGEST_PAUSE_S", 0.01):
            rendezvous.publish(late)
            self.assertEqual(store, {})
            late.job = "job-3"
            self.wait_until(lambda: store)
        self.assertEqual(list(store.values()), [b"job-3"])

    def test_stopped_while_it_waits(self):
        waiting = self.as_rank(3, Store(), start_limit_s=0)
        client.stop()
        self.assertFalse(waiting.active)
        self.assertFalse(waiting._starting.is_alive())
        self.assertEqual(self.calls(), [])

    def test_rank_0_that_cannot_start_delays_no_rank(self):
        store = Store()
        with self.assertLogs("perseus", "ERROR"):
            self.as_rank(0, store, microbatches="many")
        self.assertEqual(store, {"perseus/job/1": b""})
        with self.assertLogs("perseus", "ERROR") as logged:
            self.as_rank(3, store)
        self.assertIn("rank 0 registers no job", logged.output[0])

    def test_a_store_that_fails(self):
        with self.assertLogs("perseus", "WARNING") as logged:
            self.as_rank(0, types.SimpleNamespace())
            self.as_rank(3, types.SimpleNamespace())
        self.assertIn("the job's id cannot be sent to the other ranks", "".join(logged.output))
        self.assertIn("the job's id cannot be read from rank 0", "".join(logged.output))

    def as_attempt(self, attempt):
        """Of torchrun, in a store that all attempts share."""
        client._client = None  # the process before was killed
        self.enterContext(mock.patch.dict(os.environ, TORCHELASTIC_RESTART_COUNT=str(attempt), WORLD_SIZE="4"))

    def test_a_restart_goes_on_with_the_job(self):
        store = Store()
        self.as_attempt(0)
        self.as_rank(0, store)
        self.assertNotIn("job", self.options())
        self.as_attempt(1)
        late = self.as_rank(3, store, start_limit_s=0)  # it does not use an answer to the previous attempt
        self.assertEqual((late.active, late.reason), (False, "waiting for the job's id"))
        for attempt in (1, 2):
            self.as_attempt(attempt)
            self.as_rank(0, store)
            self.assertEqual(self.options()["job"], "job-1")
            client._client = None
            self.as_rank(3, store)
            self.assertEqual(self.options()["job"], "job-1")
        late.stop()

    def test_a_restart_registers_another_job_where_the_one_before_was_ended_or_had_other_ranks(self):
        for ended, world in ((True, "4"), (False, "2")):
            with self.subTest(ended=ended, world=world):
                store = Store()
                self.as_attempt(0)
                self.as_rank(0, store)
                if ended:
                    client.stop()
                self.as_attempt(1)
                os.environ["WORLD_SIZE"] = world
                self.as_rank(0, store)
                self.assertNotIn("job", self.options())

    def test_without_torch(self):
        with self.assertLogs("perseus", "ERROR") as logged:
            client.start(server="http://host", pp_degree=4, rank=1)
        self.assertIn("rank 1 does not know the job's id: give job=...", logged.output[0])
        client.stop()
        client.start(server="http://host", pp_degree=4, rank=1, job="j")
        self.assertEqual(self.options()["job"], "j")


class Cuda(RecordedTest):
    """With a stand-in for torch.cuda."""

    def setUp(self):
        super().setUp()
        self.entered = entered = []

        class Device:
            def __init__(self, index):
                entered.append(index)

            __enter__ = __exit__ = lambda *_: None

        self.torch = types.SimpleNamespace(
            cuda=types.SimpleNamespace(
                is_available=lambda: True,
                is_initialized=lambda: True,
                current_device=lambda: 3,
                get_device_properties=lambda index: types.SimpleNamespace(uuid=f"uuid-of-{index}"),
                current_stream=lambda: types.SimpleNamespace(cuda_stream=0x1230),
                device=Device,
            ),
            version=types.SimpleNamespace(cuda="12.4"),
        )
        self.enterContext(mock.patch.dict(sys.modules, torch=self.torch))

    def test_the_gpu_and_the_stream_of_torch(self):
        client.start()
        self.assertEqual(self.options()["device"], "nvml:GPU-uuid-of-3")
        self.assertEqual((self.calls(), self.entered), (["time_with_cuda 0x1230"], [3]))
        client.stop()
        client.start(device="simulated:x")
        self.assertEqual(self.options()["device"], "simulated:x")
        self.assertEqual(client._device_of_id(1), "nvml:GPU-uuid-of-1")

    def test_older_torch_has_no_uuids(self):
        self.torch.cuda.get_device_properties = lambda index: types.SimpleNamespace()
        client.start()
        self.assertEqual(self.options()["device"], "cuda:3")
        self.assertEqual(self.calls(), ["time_with_cuda 0x1230"])
        properties = types.SimpleNamespace(pci_domain_id=1, pci_bus_id=0x41, pci_device_id=0)
        self.torch.cuda.get_device_properties = lambda index: properties
        self.assertEqual(client._device_of_id(1), "nvml:00000001:41:00.0")

    def test_the_gpu_of_torch_through_zeusd(self):
        with mock.patch.dict(os.environ, PERSEUS_DEVICE="zeusd:"):  # the same of every rank
            client.start()
        self.assertEqual(self.options()["device"], "zeusd:GPU-uuid-of-3")
        client.stop()
        self.torch.cuda.get_device_properties = lambda index: types.SimpleNamespace()
        client.start(device="zeusd:")
        self.assertEqual(self.options()["device"], "zeusd:")

    def test_rocm_is_not_cuda(self):
        self.torch.version.cuda = None
        with self.assertLogs("perseus", "WARNING") as logged:
            client.start()
        self.assertIn("the host's clock times computations, and no clock of a GPU is set", logged.output[0])
        self.assertEqual(self.options()["device"], "zeusd:")  # by HIP's order, not by a UUID that is not NVML's
        for _ in range(20):
            client.on_step_begin()
            client.on_step_end()
        self.assertEqual(self.calls(), 20 * ["step_begin 0", "step_end"])
        client.stop()
        properties = types.SimpleNamespace(pci_domain_id=0, pci_bus_id=0xC5, pci_device_id=0, uuid="not NVML's")
        self.torch.cuda.get_device_properties = lambda index: properties
        client.start()
        self.assertEqual(self.options()["device"], "zeusd:00000000:C5:00.0")

    def test_a_client_that_starts_before_cuda(self):
        """From the first step on that finds CUDA in use, CUDA times the computations."""
        for start in (client.start, measure.start):
            with self.subTest(start):
                self.restart()
                self.torch.cuda.is_initialized = lambda: False
                start()
                client.on_step_begin()
                self.torch.cuda.is_initialized = lambda: True
                client.on_step_end()
                for _ in range(3):
                    client.on_step_begin()
                    client.on_step_end()
                calls = self.calls()
                self.assertEqual([calls.index("time_with_cuda 0x1230"), calls.count("time_with_cuda 0x1230")], [2, 1])

    def test_a_clock_of_the_program_stays(self):
        self.torch.cuda.is_initialized = lambda: False
        client.start().time_with(lambda: 7)
        self.torch.cuda.is_initialized = lambda: True
        client.on_step_begin()
        self.assertEqual(self.calls(), ["time_with 7", "step_begin 0"])

    def test_a_gpu_is_looked_for_without_initializing_the_driver(self):
        """torch.cuda.is_available() may do that, and forked children could not use it then."""
        self.torch.cuda.is_initialized = lambda: False
        self.torch.cuda.is_available = mock.Mock(return_value=True)
        client.start()
        for _ in range(3):
            client.on_step_begin()
        self.torch.cuda.is_available.assert_not_called()

    def test_a_torch_without_cuda_is_looked_at_once(self):
        self.torch.cuda.is_initialized = lambda: False
        self.torch.version.cuda = None
        client.start()
        client.on_step_begin()
        self.assertFalse(client.current().looks_for_cuda)

    def test_a_torch_that_fails(self):
        self.torch.cuda.current_device = lambda: 1 / 0
        with self.assertLogs("perseus", "WARNING"):
            self.assertTrue(client.start().active)


if __name__ == "__main__":
    unittest.main()
