"""Shares the id of a job among its ranks: rank 0 registers the job and publishes the id, the other ranks read it.

The ranks share the id through the key-value store of torch.distributed if it is initialized, not through a collective: a
rank that could not start does not block the others, and the id may arrive late, after the server was unreachable at first.
Without the store, job=... or PERSEUS_JOB provides the id.

torchrun --max-restarts starts all ranks again, possibly with the store of the attempt before and its keys. So a key contains
the number of its attempt. Rank 0 continues the job of the latest earlier attempt that published one, unless that attempt
ended its job; otherwise it registers a new job.

Errors:  none are raised.
Threads: poll() blocks; call it on a separate thread.
"""

import datetime
import logging
import os
import sys
import threading

from perseus import signals, visible_log

log = visible_log.Log(logging.getLogger("perseus"))
_starts = 0  # clients started in this process with the present store; all ranks start equally many
_started_with = None  # that store: a restart within the process brings another one
_LONGEST_PAUSE_S = 2.0
_RETRACT_LIMIT_S = 1.0


class Rendezvous:
    def __init__(self):
        global _starts, _started_with
        self._store, self._rank = _store_and_rank()
        if self._store is not _started_with:
            _starts, _started_with = 0, self._store
        _starts += 1
        self._key, *self._earlier_keys = _keys(f"perseus/job/{_starts}")
        self._registers = False  # whether this is rank 0 and registers the job itself

    @property
    def possible(self):
        return self._store is not None

    def joins(self, options):
        """Returns whether another rank registers this rank's job. Sets the option rank, and after a restart rank 0's job."""
        if self._rank is not None:
            options.setdefault("rank", self._rank)
        if not options.get("server") or "job" in options:
            return False
        if self._rank == 0:
            earlier = self._earlier_job()
            if earlier:
                options["job"] = earlier
            self._registers = not earlier
        return options.get("rank", 0) != 0 and "job" not in options

    def _earlier_job(self):
        try:
            for key in self._earlier_keys:
                if self._is_told(key):
                    return self._store.get(key).decode()
        except Exception as error:
            signals.pass_on(error)
            log.log(logging.WARNING, "the job before the restart is not known: %s", error)
        return ""

    def retract(self):
        """Withdraws the id when rank 0 ends its job, so that a restart does not continue it."""
        if self._registers and "TORCHELASTIC_RESTART_COUNT" in os.environ:
            telling = threading.Thread(target=self.give_up, name="perseus-job-id", daemon=True)  # the store may be gone
            telling.start()
            telling.join(_RETRACT_LIMIT_S)

    def give_up(self):
        """Publishes that rank 0 will have no job."""
        if self._rank == 0:
            self._tell("")

    def publish(self, client):
        """Publishes the client's job on rank 0, at once or as soon as the client has a job."""
        if self._rank != 0:
            return
        if client.job:
            self._tell(client.job)
        else:
            threading.Thread(target=self._publish_later, args=(client,), name="perseus-job-id", daemon=True).start()

    def _publish_later(self, client):
        while not client.stopped.wait(_LONGEST_PAUSE_S):
            if client.job:
                self._tell(client.job)
                return

    def _tell(self, job):
        try:
            self._store.set(self._key, job)
        except Exception as error:
            signals.pass_on(error)
            log.log(logging.WARNING, "the job's id cannot be sent to the other ranks: %s", error)

    def poll(self, stopped):
        """Returns the job's id as soon as rank 0 publishes it; "" if rank 0 has no job or `stopped` is set."""
        pause_s = 0.02
        try:
            while not self._is_told(self._key):
                if stopped.wait(pause_s):
                    return ""
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            return self._store.get(self._key).decode()
        except Exception as error:
            signals.pass_on(error)
            log.log(logging.WARNING, "the job's id cannot be read from rank 0: %s", error)
            return ""

    def _is_told(self, key):
        if hasattr(self._store, "check"):
            return self._store.check([key])
        try:  # torch before 2.6
            self._store.wait([key], datetime.timedelta(seconds=0.1))
            return True
        except RuntimeError:  # timeout
            return False


def _keys(base):
    """Returns the key of this attempt of torchrun, then those of earlier attempts with the same number of ranks."""
    attempt, ranks = os.environ.get("TORCHELASTIC_RESTART_COUNT", ""), os.environ.get("WORLD_SIZE")
    return [f"{base}/{ranks}/{i}" for i in range(int(attempt), -1, -1)] if attempt.isdigit() else [base]


def distributed():
    """Returns torch.distributed if the program has initialized it, else None. Imports nothing."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() and module.is_initialized() else None


def _store_and_rank():
    try:
        module = distributed()
        return (module.distributed_c10d._get_default_store(), module.get_rank()) if module is not None else (None, None)
    except Exception as error:
        signals.pass_on(error)
        log.log(logging.WARNING, "torch.distributed has no store to share the job's id: %s", error)
        return None, None
