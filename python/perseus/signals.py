"""Tells exceptions that a signal's handler of the program raises from errors that a hook may swallow.

Problem: Python runs the handler within whatever runs: most signals come while a hook waits or computes. A handler that raises
         (to save a checkpoint and exit) means the training loop, so its exception must leave the hook.
Method:  only a handler gets the frame that it interrupts as an argument; that frame stands before it in the traceback.
Errors:  none are raised, but for the program's own.
"""

import inspect


def pass_on(error):
    """In an except clause: raises the error again if a signal's handler raised it."""
    if from_handler(error):
        raise error


def from_handler(error):
    if not isinstance(error, Exception):  # KeyboardInterrupt, SystemExit
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        if _is_handler(trace.tb_next.tb_frame, trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _is_handler(frame, interrupted):
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    for name in code.co_varnames[:count]:
        value = frame.f_locals.get(name)
        if value is interrupted or (type(value) is tuple and any(part is interrupted for part in value)):
            return True
    return False
