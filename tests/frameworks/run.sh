#!/usr/bin/env bash
# Runs a test of a real training framework in the root that has it.
#
# usage: run.sh BUILD TEST.py [ARGUMENT...]    77 where there is no root; PERSEUS_FRAMEWORKS=1 makes one
# The root is $PERSEUS_FRAMEWORKS_ROOT, else build/frameworks/trixie of this repository.
# Tests of Megatron Core and DeepSpeed run the checkouts that PERSEUS_MEGATRON and PERSEUS_DEEPSPEED name.
set -euo pipefail
build=$(realpath "$1") test=$2
shift 2
for checkout in PERSEUS_MEGATRON PERSEUS_DEEPSPEED; do
  [ -z "${!checkout:-}" ] || export "$checkout=$(realpath "${!checkout}")"
done
cd "$(dirname "${BASH_SOURCE[0]}")"
root=${PERSEUS_FRAMEWORKS_ROOT:-../../build/frameworks/trixie}
skip() { echo "$1" && exit 77; }
[ "$(id -u)" -eq 0 ] || skip "a root of another Debian can be entered by root only"
if [ "${PERSEUS_FRAMEWORKS:-0}" = 1 ]; then
  ./make_root.sh "$root"
fi
[ -e "$root/complete" ] || skip "there is no root with PyTorch in $root: PERSEUS_FRAMEWORKS=1 makes one, with 1.3 GB of packages"
exec ./in_root.sh "$root" "$build" python3 -B "/perseus/tests/frameworks/$test" "$@"
