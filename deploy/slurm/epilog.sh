#!/bin/sh
# Epilog of slurmd (root, after a job has ended on this node): its clocks are given back, or the node is drained.
#
# The daemon gives a clock back when its process ends. Jobs that were killed with a helper of their own leave leases in
# /tmp/perseus-UID, or in /run/perseus.
failed=0
perseus-clockd --restore || failed=1
folder=/tmp/perseus-${SLURM_JOB_UID:?the epilog runs in slurmd}
if [ -d "$folder" ] && [ ! -L "$folder" ] && [ "$(stat -c %u "$folder")" = "$SLURM_JOB_UID" ]; then
  # As the user, who owns the folder: root follows no path in it.
  setpriv --reuid "$SLURM_JOB_UID" --clear-groups --regid "$(stat -c %g "$folder")" perseus-clockd --restore || failed=1
fi
[ $failed -eq 0 ] || logger -t perseus "job ${SLURM_JOB_ID:-?}: a clock is still locked; slurmd drains this node"
exit $failed
