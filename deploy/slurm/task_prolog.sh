#!/bin/sh
# TaskProlog of slurmd (the job's user, before each task): slurmd exports what it prints.
echo "export PERSEUS_SERVER=${PERSEUS_SERVER:-http://head:7787}"
