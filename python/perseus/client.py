"""Measures the computations of one rank, follows plans and requests clocks: the client in the training process.

    from perseus import client
    from perseus.client import controller, profiler

    client.start(server="http://host:7787", profile="gpt3-xl", ...)   # options of perseus.h; see perseus/options.py
    controller.set_speed("forward")                                  # optional: microbatch, chunk, both from 0
    profiler.begin("forward")
    ...
    profiler.end("forward")

PERSEUS_DISABLE=1 turns the client off.

Errors:  no function raises, blocks or ends the process during training. The logger "perseus" logs each problem once, and
         training continues at maximum clock. Without any configuration of logging its messages appear on standard error
         (PERSEUS_LOG=off, warning or info; perseus/visible_log.py). A wrong PERSEUS_... variable is ignored; with a wrong argument, the process
         runs without a client. With PERSEUS_STRICT=1, start() and adapters raise on both.
Cost:    see bench/python_bench.py.
Threads: as in perseus.h; a process has one client.
"""

import atexit
import ctypes
import json
import logging
import operator
import os
import sys
import threading

from perseus import job_id, library, signals, visible_log
from perseus import options as option_values

log = logging.getLogger("perseus")
guarded_log = visible_log.Log(log)
_LEVELS = (logging.INFO, logging.WARNING, logging.ERROR)
_START_LIMIT_S = 5  # the library's default
_BY_ZEUSD = "zeusd:"  # the rank's own GPU, whichever that is, through zeusd


def _nothing(*_):
    pass


# Functions that the hooks call, and their arguments. start() and stop() rebind them, so that code that stored
# profiler.begin before start() still calls the client.
_set_speed = _begin = _end = _step_begin = _step_begin_of = _step_end = _nothing
_handle = None
_codes = {name: library.prepared_int(code) for code, name in enumerate(library.INSTRUCTIONS)}
_counted = library.prepared_int(-1)  # the client counts

_client = None
_said = set()


class Refused(TypeError, ValueError):
    """A wrong option, with PERSEUS_STRICT=1."""


def say_once(message, *arguments, level=logging.WARNING):
    """Logs a message once: for messages that must not repeat in every iteration."""
    try:
        text = message % arguments if arguments else str(message)
    except Exception as error:  # of an argument that cannot be printed
        signals.pass_on(error)
        text = str(message)
    if text not in _said and len(_said) < 100:
        _said.add(text)
        guarded_log.log(level, "%s", text)


def ignore(error, message, *arguments):
    """In an except clause: logs a message about the error once, or raises it again if a signal's handler raised it."""
    signals.pass_on(error)
    say_once(message, *arguments)


def refuse(error):
    """Logs once why this process has no client. With PERSEUS_STRICT=1, raises what is wrong with the options."""
    if isinstance(error, (TypeError, ValueError)) and option_values.is_set("PERSEUS_STRICT"):
        raise Refused(str(error)) from None
    if isinstance(error, (TypeError, ValueError, library.LibraryUnusable)):
        say_once("Perseus does nothing in this process: %s", error, level=logging.ERROR)
    else:  # training continues after any error
        guarded_log.log(logging.ERROR, "Perseus does nothing in this process", exc_info=error)


def set_speed(instruction, microbatch=_counted, chunk=_counted):
    """Requests the plan's clock for the current, or next, computation."""
    try:
        _set_speed(_handle, _codes[instruction], microbatch, chunk)
    except Exception as error:
        _again(error, _set_speed, instruction, microbatch, chunk)


def begin(instruction, microbatch=_counted, chunk=_counted):
    try:
        _begin(_handle, _codes[instruction], microbatch, chunk)
    except Exception as error:
        _again(error, _begin, instruction, microbatch, chunk)


def end(instruction, microbatch=_counted, chunk=_counted):
    try:
        _end(_handle, _codes[instruction], microbatch, chunk)
    except Exception as error:
        _again(error, _end, instruction, microbatch, chunk)


def on_instruction_begin(instruction, microbatch=_counted, chunk=_counted):
    """Calls set_speed and begin. Also for code written for Zeus, which passes only the name."""
    try:
        code = _codes[instruction]
        _set_speed(_handle, code, microbatch, chunk)
        _begin(_handle, code, microbatch, chunk)
    except Exception as error:
        _again(error, _set_speed, instruction, microbatch, chunk)
        _again(error, _begin, instruction, microbatch, chunk)


on_instruction_end = end


def on_step_begin(kind="train", microbatches=0):
    """Begins an iteration. With kind "evaluate", the client does nothing until on_step_end().

    `microbatches`: those of this step, if steps differ; 0: as many as the step before."""
    try:
        code = library.TRAIN if kind == "train" else library.EVALUATE
        microbatches = operator.index(microbatches or 0)
    except Exception as error:
        ignore(error, "on_step_begin(): ignored: %s", error)
        return
    if _client is not None and _client.looks_for_cuda:
        _client._look_for_cuda()
    # Not Exception: a paced job waits here, and what is raised then must reach the program.
    try:
        if microbatches > 0:
            _step_begin_of(_handle, code, microbatches)
        else:
            _step_begin(_handle, code)
    except ctypes.ArgumentError as error:  # all that a call of the library raises itself
        say_once("on_step_begin(): ignored: %s", error)


def step_table(microbatches, action_table):
    """The action table (PyTorch's CSV) of steps with that many microbatches, before the first one of them."""
    running = current()
    try:
        if running is not None and running.active:
            running._library.step_table(running._handle, operator.index(microbatches), action_table.encode())
    except Exception as error:
        ignore(error, "step_table(): ignored: %s", error)


def on_step_end():
    try:
        _step_end(_handle)
    except ctypes.ArgumentError as error:
        say_once("on_step_end(): ignored: %s", error)


def _again(error, function, instruction, microbatch, chunk):
    """Repeats the call with arguments of unusual types (numpy's numbers, None), or logs once why they are invalid."""
    signals.pass_on(error)
    try:
        if not isinstance(instruction, str) or instruction not in _codes:
            names = ", ".join(_codes)
            say_once("unknown instruction %.100r is ignored; allowed: %s", instruction, names)
            return
        ids = [-1 if id is None or id is _counted else operator.index(id) for id in (microbatch, chunk)]
        function(_handle, _codes[instruction], *ids)
    except Exception as error:
        ignore(error, "%s, microbatch %.100r, chunk %.100r: ignored: %s", instruction, microbatch, chunk, error)


class _Profiler:
    """Measures time and energy of the computation between begin and end."""

    begin = staticmethod(begin)
    end = staticmethod(end)


class _Controller:
    """Sets the GPU's clock to that of the plan."""

    set_speed = staticmethod(set_speed)


profiler = _Profiler()
controller = _Controller()


class Client:
    """The client that start() returns. If it is not `active`, its methods do nothing and `reason` gives the cause; a rank
    that waits for the job's id becomes active when rank 0 publishes it."""

    def __init__(self, reason=""):
        self._library = self._handle = self._cuda = self._starting = self._rendezvous = None
        self._process = os.getpid()
        self._changing = threading.RLock()  # a signal's handler may call stop()
        self.reason, self.stopped, self._settled = reason, threading.Event(), threading.Event()
        self.before_stop = None  # called before the client ends, if it is active
        self.looks_for_cuda = False  # the program had not begun to use its GPU at start()
        self.withheld = False

    @property
    def active(self):
        return self._handle is not None and os.getpid() == self._process

    @property
    def job(self):
        """The job's id; "" while the client has none."""
        return self._library.job(self._handle).decode() if self.active else ""

    def statistics(self):
        """Returns perseus_statistics as a dict; empty if not active."""
        if not self.active:
            return {}
        values = library.Statistics(size=ctypes.sizeof(library.Statistics))
        self._library.statistics_get(self._handle, values)
        result = {name: getattr(values, name) for name, _ in values._fields_[1:]}
        if 0 <= values.state < len(library.STATES):
            result["state"] = library.STATES[values.state]
        return result

    def status(self):
        """Returns perseus_status() as a dict; if not active, {"error": REASON}."""
        if not self.active or self.withheld:
            return {"error": self.reason or "stopped"}
        size = self._library.status(self._handle, None, 0) + 1024  # the text may grow until the next call
        text = ctypes.create_string_buffer(size)
        self._library.status(self._handle, text, size)
        try:
            return json.loads(text.value)
        except ValueError as error:
            return {"error": f"perseus_status: {error}"}

    def time_with_cuda(self, stream):
        """Times computations by CUDA events on `stream`, given as its address (torch: stream.cuda_stream). Returns success."""
        self.looks_for_cuda = False
        try:
            return self.active and self._library.time_with_cuda(self._handle, operator.index(stream or 0)) == 0
        except Exception as error:
            ignore(error, "time_with_cuda(): ignored: %s", error)
            return False

    def time_with(self, nanoseconds):
        """Times computations by the given function, for example time.monotonic_ns of a simulation."""
        self.looks_for_cuda = False
        last = []  # what it returned

        def now(*_):
            try:
                last[:] = [operator.index(nanoseconds())]
            except Exception as error:
                say_once("time_with(): ignored: %s", error)
            return last[0] if last else 0

        now()
        if self.active and last:
            self._clock = library.ClockFunction(now)
            self._library.time_with(self._handle, self._clock, None)

    def stop(self):
        """Resets the clocks and ends all threads and processes that the client started. Does nothing in a forked child."""
        global _client
        if os.getpid() != self._process:
            return
        before, self.before_stop = self.before_stop, None
        if before is not None and self.active:
            before()
        self.stopped.set()
        if self._starting not in (None, threading.current_thread()):
            self._settled.wait()  # perseus_start() returns within its time limit
            self._starting.join()
        if _client is self:
            _client = None
        with self._changing:
            _call_nothing()
            handle, self._handle = self._handle, None
        if handle is not None:
            self._rendezvous.retract()
            self._library.stop(handle)

    def _start(self, limit_s, run, *arguments):
        """Runs it on a thread, and waits: the handler of a signal, or Ctrl-C, ends the wait at once, and the client starts
        all the same."""

        def body():
            try:
                run(*arguments)
            except Exception as error:
                self.reason = str(error)
                guarded_log.log(logging.ERROR, "Perseus does nothing in this process", exc_info=error)
            finally:
                self._settled.set()

        self._starting = threading.Thread(target=body, name="perseus-start", daemon=True)
        try:
            self._starting.start()
        except RuntimeError:  # no more threads
            self._starting = None
            if limit_s is not None:
                raise
            run(*arguments)
            return
        self._settled.wait(limit_s)

    def _run_and_publish(self, rendezvous, used_library, options):
        self._run(used_library, options)
        rendezvous.publish(self)

    def _run(self, used_library, options):
        """Calls perseus_start(), unless stop() was called meanwhile."""
        versioned = library.OptionsOfAnyVersion()
        used_library.options_init(versioned.options)
        option_values.fill(versioned.options, options)
        versioned.options.log = _log_function
        handle = used_library.start(versioned.options)
        if handle is None:
            self.reason = "out of memory"
            return
        with self._changing:
            stopped = self.stopped.is_set()
            if not stopped:
                self._library, self._handle, self.reason = used_library, handle, ""
                if self._cuda is not None:
                    self._time_with_torch()
                _call(used_library, handle)
                if self._handle is None:  # stopped by a signal's handler
                    _call_nothing()
        if stopped:
            used_library.stop(handle)

    def _run_in_job_of_rank_0(self, rendezvous, used_library, options):
        job = rendezvous.poll(self.stopped)
        if job:
            self._run(used_library, {**options, "job": job})
        elif not self.stopped.is_set():
            self.reason = "rank 0 registers no job"
            guarded_log.log(logging.ERROR, "Perseus does nothing in this process: %s", self.reason)

    def _time_with_torch(self):
        cuda, device, stream = self._cuda
        try:
            with cuda.device(device):  # this may run on a thread of the client
                self.time_with_cuda(stream)
        except Exception as error:
            ignore(error, "computations are timed by the host's clock: %s", error)

    def _look_for_cuda(self):
        """Before a step: times by CUDA from here on, if the program has begun to use it since start()."""
        torch = sys.modules.get("torch")
        if torch is None:
            return
        try:
            # Not is_available(), which may initialize the driver: forked children could not use it then.
            self.looks_for_cuda = bool(getattr(getattr(torch, "version", None), "cuda", None))
            if self.looks_for_cuda and torch.cuda.is_initialized() and self.active:
                self._cuda = _note_torch({})
                self.looks_for_cuda = False
                self._time_with_torch()
        except Exception as error:
            self.looks_for_cuda = False
            ignore(error, "computations are timed by the host's clock: %s", error)


def withhold(reason):
    """Logs why the figures of the program's loop would be wrong; status() gives the reason in their place from now on."""
    say_once("%s", reason)
    if current() is not None:
        _client.reason, _client.withheld = reason, True


def start(**arguments):
    """Starts this rank's client; see the module's doc string. Later calls return the same client."""
    global _client
    if current() is not None:
        if arguments:
            say_once("start() called again: the running client stays, the new options are ignored")
        return _client
    starting = _client = Client()
    try:
        rendezvous = _client._rendezvous = job_id.Rendezvous()
        _start(_client, rendezvous, arguments)
    except BaseException as error:
        if signals.from_handler(error):
            if starting._starting is None and _client is starting:
                _client = None  # another start() may follow
            raise
        rendezvous.give_up()
        _client = None
        starting.reason = str(error)
        refuse(error)
        _client = starting
    return starting


init = start


def stop():
    """Ends the client, if the process has one; start() may follow."""
    if _client is not None:
        _client.stop()


def current():
    """Returns the client that start() made in this process; None without one."""
    return _client if _client is not None and _client._process == os.getpid() else None


def _start(client, rendezvous, arguments):
    if option_values.is_set("PERSEUS_DISABLE"):
        client.reason = "PERSEUS_DISABLE is set"
        rendezvous.give_up()
        return
    wrong_level = visible_log.prepare(log)
    if wrong_level:
        say_once("%s", wrong_level)
    options = option_values.collect(arguments, remark=say_once)
    if options.get("rank", 0) == 0:
        visible_log.show_job(log)
    used_library = library.load()
    client._cuda = _note_torch(options)
    client.looks_for_cuda = client._cuda is None
    if not rendezvous.joins(options):
        client.reason = "starting"
        client._start(None, client._run_and_publish, rendezvous, used_library, options)
        return
    if not rendezvous.possible:
        raise ValueError(
            f"rank {options['rank']} does not know the job's id: give job=..., or start() after "
            "torch.distributed.init_process_group()"
        )
    client.reason = "waiting for the job's id"
    limit_s = options.get("start_limit_s", _START_LIMIT_S)
    client._start(limit_s, client._run_in_job_of_rank_0, rendezvous, used_library, options)


def _call(used_library, handle):
    global _handle, _set_speed, _begin, _end, _step_begin, _step_begin_of, _step_end
    _handle = library.prepared_pointer(handle)
    _set_speed, _begin, _end = used_library.set_speed, used_library.begin, used_library.end
    _step_begin, _step_begin_of = used_library.step_begin, used_library.step_begin_of
    _step_end = used_library.step_end


def _call_nothing():
    global _handle, _set_speed, _begin, _end, _step_begin, _step_begin_of, _step_end
    _set_speed = _begin = _end = _step_begin = _step_begin_of = _step_end = _nothing
    _handle = None


@library.LogFunction
def _log_function(_, level, message):
    guarded_log.log(_LEVELS[level] if 0 <= level < len(_LEVELS) else logging.ERROR, "%s", message.decode(errors="replace"))


def _torch_cuda():
    """Returns torch.cuda if the program has created a context with it, else None. Imports nothing."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() and cuda.is_available() else None


def _is_rocm():
    return not sys.modules["torch"].version.cuda  # torch for ROCm has a torch.cuda, too


def _note_torch(options):
    """Sets the option device to torch's GPU unless it is given. Returns (torch.cuda, device, stream) for timing; None
    without CUDA."""
    try:
        cuda = _torch_cuda()
        if cuda is None:
            return None
        device = cuda.current_device()
        if options.get("device") in (None, "", _BY_ZEUSD):
            options["device"] = _device(device, cuda, options.get("device"))
        if _is_rocm():
            say_once("torch is the one for AMD GPUs: the host's clock times computations, and no clock of a GPU is set")
            return None
        return cuda, device, cuda.current_stream().cuda_stream
    except Exception as error:
        ignore(error, "which GPU torch uses is not known, the library looks for it: %s", error)
        return None


def _device(index, cuda=None, given=None):
    """Returns a selector for torch's device of that index. NVML's index differs: NVML ignores CUDA_VISIBLE_DEVICES."""
    properties = cuda.get_device_properties(index) if cuda is not None else None
    rocm = cuda is not None and _is_rocm()
    kind = _BY_ZEUSD if rocm or given == _BY_ZEUSD else "nvml:"
    uuid = getattr(properties, "uuid", None)
    if uuid is not None and not rocm:  # torch 2.4 and later
        return f"{kind}GPU-{uuid}"
    place = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    if all(isinstance(number, int) for number in place):
        return kind + "{:08X}:{:02X}:{:02X}.0".format(*place)
    # The library reads the bus id from libcuda, or finds the GPU by the order of HIP's devices.
    return kind if kind == _BY_ZEUSD else f"cuda:{index}"


class PipelineFrequencyOptimizer:
    """Replaces the class of this name in Zeus: the same arguments and methods."""

    def __init__(
        self,
        rank,
        dp_rank,
        pp_rank,
        tp_rank,
        device_id,
        dp_degree,
        pp_degree,
        tp_degree,
        world_size,
        server_url,
        job_metadata=None,
    ):
        self.client = start(
            rank=rank,
            dp_rank=dp_rank,
            pp_rank=pp_rank,
            tp_rank=tp_rank,
            device=_device_of_id(device_id),
            dp_degree=dp_degree,
            pp_degree=pp_degree,
            tp_degree=tp_degree,
            world_size=world_size,
            server=server_url,
            job_name=job_metadata,
            profile=job_metadata,
        )

    on_step_begin = staticmethod(on_step_begin)
    on_step_end = staticmethod(on_step_end)
    on_instruction_begin = staticmethod(on_instruction_begin)
    on_instruction_end = staticmethod(on_instruction_end)


def _device_of_id(device_id):
    given = os.environ.get("PERSEUS_DEVICE")
    if given and given != _BY_ZEUSD:
        return given
    try:
        return _device(operator.index(device_id), _torch_cuda(), given)
    except Exception as error:
        ignore(error, "device_id %r is not known, the library looks for the GPU: %s", device_id, error)
        return None


atexit.register(stop)
