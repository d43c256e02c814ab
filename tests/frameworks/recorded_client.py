"""perseus.client without a library: it records its calls, or each of them raises.

    with replaced(mode, log, options): ...

Input: mode "recorded" or "failing". Output: appends ("begin" or "end", kind, microbatch, chunk) to the log, of training
steps only; ("failed",) for each call that raised. Puts the options that the adapter gives to client.start() in `options`.
"""

import contextlib
import ctypes

from perseus import client, library

_CALLS = ("_set_speed", "_begin", "_end", "_step_begin", "_step_begin_of", "_step_end")


@contextlib.contextmanager
def replaced(mode, log, options):
    names = {id(code): name for name, code in client._codes.items()}
    start, training = client.start, [True]

    def note(verb):
        def call(_, code, microbatch, chunk):
            ctypes.pythonapi.Py_IsInitialized()  # as the library's functions, no call that torch.compile can trace
            if training[0]:
                log.append((verb, names[id(code)], microbatch, chunk))

        return call

    def step_begin(_, kind):
        training[0] = kind == library.TRAIN
        log.append(("step", "train" if training[0] else "evaluate"))

    def fail(*_):
        log.append(("failed",))
        raise ctypes.ArgumentError("Perseus fails")

    def start_replaced(**given):
        options.update(given)
        if mode == "failing":
            for name in _CALLS:
                setattr(client, name, fail)
            fail()
        client._begin, client._end, client._step_begin = note("begin"), note("end"), step_begin
        client._step_begin_of = lambda handle, kind, _: step_begin(handle, kind)

    client.start = start_replaced
    try:
        yield
    finally:
        client.start = start
        for name in _CALLS:
            setattr(client, name, client._nothing)
