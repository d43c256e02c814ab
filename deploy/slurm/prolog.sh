#!/bin/sh
# Prolog of slurmd (root, before a job): clocks that an earlier job left locked are given back, and the clock daemon runs.
# It never fails: a job without it trains at maximum clock.
systemctl start perseus-clockd.service || logger -t perseus "the clock daemon does not start: the job runs at maximum clock"
perseus-clockd --restore || logger -t perseus "a clock of an earlier job is still locked"
exit 0
