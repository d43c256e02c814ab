#!/usr/bin/env bash
# Runs a test of a real training framework in the root file system that contains it.
#
# usage: run.sh BUILD TEST.py [ARGUMENT...]    77 where it cannot run, and what for
# With PERSEUS_FRAMEWORKS=1 the root is made if need be, in build/frameworks/trixie; PERSEUS_FRAMEWORKS_ROOT names one that
# exists. With neither, nothing runs, because these tests take long.
# Tests of Megatron Core, DeepSpeed and torchtitan run the checkouts that PERSEUS_MEGATRON, PERSEUS_DEEPSPEED and
# PERSEUS_TORCHTITAN name; tests of Lightning and Hugging Face's trainers, the packages in PERSEUS_TRAINERS.
set -euo pipefail
build=$(realpath "$1") test=$2
shift 2
for checkout in PERSEUS_MEGATRON PERSEUS_DEEPSPEED PERSEUS_TORCHTITAN PERSEUS_TRAINERS; do
  [ -z "${!checkout:-}" ] || export "$checkout=$(realpath "${!checkout}")"
done
cd "$(dirname "${BASH_SOURCE[0]}")"
root=${PERSEUS_FRAMEWORKS_ROOT:-../../build/frameworks/trixie}
skip() { echo "$1" && exit 77; }
[ "$(id -u)" -eq 0 ] || skip "a root of another Debian can be entered by root only"
if [ "${PERSEUS_FRAMEWORKS:-0}" = 1 ]; then
  (flock 9 && ./make_root.sh "$root") 9>/tmp/perseus_frameworks.lock
elif [ -z "${PERSEUS_FRAMEWORKS_ROOT:-}" ]; then
  skip "PERSEUS_FRAMEWORKS=1 (./test --frameworks) runs this, in a root with PyTorch made of 1.3 GB of packages"
fi
[ -e "$root/complete" ] || skip "there is no root with PyTorch in $root"
exec ./in_root.sh "$root" "$build" python3 -B "/perseus/tests/frameworks/$test" "$@"
