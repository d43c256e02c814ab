"""Measures what simulated GPUs draw together: from their files, without asking the server or the clients.

Output: readings at equal intervals, each the energy of all GPUs since they were made. A reading is `behind_s` old, since a
computation that begins late changes the past by half of it at most.
Errors:  Late: a GPU no longer knows its energy at the reading's moment (the machine stood still for seconds).
"""

import threading
import time

from perseus import simulated_gpu

INTERVAL_S = 0.1


class Late(Exception):
    pass


class SiteMeter:
    def __init__(self, files, behind_s=0.7):
        self._files, self._behind_s, self._over, self._error = list(files), behind_s, threading.Event(), None
        self.readings = []  # (time.monotonic(), J)
        self._first_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        """Waits until the readings reach the present."""
        time.sleep(self._behind_s + INTERVAL_S)
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def mean_w(self, from_s, until_s):
        first, *_, last = [reading for reading in self.readings if from_s <= reading[0] <= until_s]
        return (last[1] - first[1]) / (last[0] - first[0])

    def greatest_w(self, from_s, until_s, window_s):
        """The greatest mean over a window in that time, and the number of windows."""
        length = round(window_s / INTERVAL_S)
        within = [reading for reading in self.readings if from_s <= reading[0] <= until_s]
        means = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(within, within[length:])]
        return max(means), len(means)

    def _run(self):
        try:
            while not self._over.wait(INTERVAL_S / 2):
                self._read(time.monotonic() - self._behind_s)
        except Exception as error:
            self._error = error

    def _read(self, until_s):
        while (at_s := self._first_s + INTERVAL_S * len(self.readings)) <= until_s:
            records = [simulated_gpu.read(file, at_s) for file in self._files]
            if any(record.remembered_from_s > at_s for record in records):
                raise Late(f"the meter reads {time.monotonic() - at_s:.1f} s too late")
            self.readings.append((at_s, sum(record.energy_j for record in records)))
