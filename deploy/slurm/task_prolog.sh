#!/bin/sh
# TaskProlog of slurmd (the job's user, before each task): slurmd exports what it prints.
echo "export PERSEUS_SERVER=${PERSEUS_SERVER:-http://head:7787}"

# Tier by quality of service, where a site's power is limited (docs/power.md): least rate and priority. The job's own come first.
case "${SLURM_JOB_QOS:-}" in
high) tier="1 4" ;;
low) tier="0.5 0.5" ;;
*) exit 0 ;;
esac
echo "export PERSEUS_LEAST_RATE=${PERSEUS_LEAST_RATE:-${tier% *}}"
echo "export PERSEUS_PRIORITY=${PERSEUS_PRIORITY:-${tier#* }}"
