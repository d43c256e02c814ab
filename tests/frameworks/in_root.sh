#!/usr/bin/env bash
# Runs a command in a root that make_root.sh made, with this repository at /perseus and its build folder at /build.
#
# usage: in_root.sh ROOT BUILD COMMAND...
#
# $PERSEUS_MEGATRON, $PERSEUS_DEEPSPEED and $PERSEUS_TORCHTITAN, checkouts of Megatron Core, DeepSpeed and torchtitan, are
# read-only at /megatron, /deepspeed and /torchtitan; $PERSEUS_TRAINERS, a folder of Python packages, at /trainers.
# $TIME_SCALE (longer computations of simulated GPUs, for a busy machine) and $PERSEUS_FRAMEWORKS_VERBOSE (ranks print) are kept.
# Mounts live in a namespace of their own and end with the command. Perseus' programs of this system run there with the
# libraries that Debian 13 lacks or has in other versions: copied to /opt/perseus, on the loader's path.
set -euo pipefail
root=$(realpath "$1") build=$(realpath "$2")
shift 2
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
mkdir -p "$root"/{perseus,build,opt/perseus,megatron,deepspeed,torchtitan,trainers}
for program in "$build"/{libperseus.so,apps/perseus,apps/perseus-clockd,apps/libcuda-simulated.so}; do
  [ -e "$program" ] || continue
  ldd "$program" | awk '$3 ~ /^\// { print $3 }' | while read -r library; do
    [[ $library == "$build"/* ]] || compgen -G "$root/usr/lib/*/${library##*/}" >/dev/null || cp -uLt "$root/opt/perseus" "$library"
  done
done
export root repository build
exec unshare --mount --pid --fork --kill-child bash -c '
  set -e
  mount --bind "$repository" "$root/perseus"
  mount --bind "$build" "$root/build"
  for framework in megatron deepspeed torchtitan trainers; do
    variable=PERSEUS_${framework^^}
    [ -z "${!variable:-}" ] || mount -o bind,ro "$(realpath "${!variable}")" "$root/$framework"
  done
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  exec env -i PATH=/usr/bin:/bin:/usr/sbin HOME=/tmp LANG=C.UTF-8 LD_LIBRARY_PATH=/opt/perseus PYTHONPATH=/perseus/python \
    PERSEUS_LIBRARY=/build/libperseus.so PERSEUS_HELPER=/build/apps/perseus-clockd PERSEUS_PROGRAM=/build/apps/perseus \
    PERSEUS_CUDA=/build/apps/libcuda-simulated.so GLOO_SOCKET_IFNAME=lo USE_LIBUV=0 OMP_NUM_THREADS=1 \
    ${TIME_SCALE+TIME_SCALE=$TIME_SCALE} ${PERSEUS_FRAMEWORKS_VERBOSE+PERSEUS_FRAMEWORKS_VERBOSE=$PERSEUS_FRAMEWORKS_VERBOSE} \
    chroot "$root" "$@"' in_root "$@"
