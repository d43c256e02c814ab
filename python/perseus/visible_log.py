"""Makes the log of the client visible without any configuration of logging.

Problem: Python drops messages of level INFO of a program that does not configure logging, and a framework that configures
         the root logger at WARNING (Megatron by default) drops them, too. The client's first line and its changes of plan
         are INFO: without this module, a job that works is silent.
Output:  a handler of the logger "perseus" that prints a message to standard error if no other handler takes it, as
         "perseus: MESSAGE". Rank 0 logs from INFO on, the other ranks from the root logger's level on (by default
         WARNING), so that a job of 1,024 ranks prints one line at its start. PERSEUS_LOG=off, warning or info sets the
         level of any rank; else logging.getLogger("perseus").setLevel(), called before start(), does.
Errors:  none reach the program: a message that cannot be printed is dropped.
"""

import logging
import os
import sys

from perseus import signals

LEVELS = {"off": logging.CRITICAL + 1, "warning": logging.WARNING, "info": logging.INFO}
_MARKS = ((logging.ERROR, "error: "), (logging.WARNING, "warning: "))


class LastHandler(logging.Handler):
    """Prints the records that no other handler of the logger or of those above it takes."""

    def __init__(self, logger):
        super().__init__()
        self._logger = logger

    def emit(self, record):
        try:
            if sys.stderr is None or self._taken(record):
                return
            mark = next((mark for level, mark in _MARKS if record.levelno >= level), "")
            print(f"perseus: {mark}{self.format(record)}", file=sys.stderr, flush=True)
        except Exception as error:  # the log itself failed: there is no place to report it
            signals.pass_on(error)

    def _taken(self, record):
        """A handler below root's level gets the record all the same: only a handler's own level counts."""
        logger = self._logger
        while logger is not None:
            for handler in logger.handlers:
                if handler is not self and record.levelno >= handler.level:
                    return True
            logger = logger.parent if logger.propagate else None
        return False


class Log:
    """Logs for the client: no error of a handler of the program reaches training."""

    def __init__(self, logger):
        self._logger = logger

    def log(self, level, message, *arguments, **how):
        try:
            self._logger.disabled = False  # logging.config disables loggers that it does not know
            self._logger.log(level, message, *arguments, **how)
        except Exception as error:  # the log itself failed: there is no place to report it
            signals.pass_on(error)


def prepare(logger):
    """Attaches the handler, unless it is there. Returns what is wrong with PERSEUS_LOG; "" if nothing is."""
    if not any(isinstance(handler, LastHandler) for handler in logger.handlers):
        logger.addHandler(LastHandler(logger))
    wanted = os.environ.get("PERSEUS_LOG", "").lower()
    if wanted in LEVELS:
        logger.setLevel(LEVELS[wanted])
    elif wanted:
        return f"PERSEUS_LOG is {wanted!r}, ignored; allowed: {', '.join(LEVELS)}"
    return ""


def show_job(logger):
    """Lets messages of level INFO pass, in the rank that logs for its job."""
    if logger.level == logging.NOTSET and not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
