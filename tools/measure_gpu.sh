#!/usr/bin/env bash
# Measures one GPU's driver within ten minutes; see --help and docs/device.md.
set -euo pipefail

help() {
  cat <<'EOF'
measure_gpu.sh measures what one GPU's driver does with the calls that Perseus makes, and writes a Markdown page
and a JSON file. It takes less than ten minutes.

usage: tools/measure_gpu.sh [--out FOLDER] [--gpu N] [--part NAME]... [--quick] [--no-torch] [--build FOLDER]

  --out FOLDER    where gpu.md and gpu.json (and torch.md, torch.json) go (default: gpu_figures)
  --gpu N         ordinal of the GPU among those visible to CUDA (default: 0)
  --part NAME     measure only this part; may be repeated. Parts: host-cost, boundary-cost, visibility, order,
                  queue-depth, timers, helper, graphs, nvml, torch
  --quick         take few samples, to see that everything runs
  --no-torch      leave out the part that needs PyTorch
  --build FOLDER  where the program is built (default: build/measure_gpu)
  --help          print this text

It changes no clock, power limit or mode of any GPU: it calls getters of NVML only. The GPU should be idle; other
jobs on it make figures worse and are slowed by kernels of one thread.
It needs Linux, a C++20 compiler ($CXX, default: g++) and the driver; no CUDA toolkit and no library.
The torch part needs PyTorch, and the libraries that Perseus is built with; where they are missing it is skipped.

Environment: PERSEUS_CUDA and PERSEUS_NVML name other libraries than libcuda.so.1 and libnvidia-ml.so.1, for example
those of the simulated GPU; PERSEUS_LIBRARY names a libperseus.so for the torch part.
Exit codes: 0 measured; 64 wrong usage; 69 no GPU; 70 a part failed (the page says which); 73 cannot write;
            74 cannot build; 124 the GPU did not answer in time.
EOF
}

die() {
  local code=$1
  shift
  echo "measure_gpu.sh: $*" >&2
  exit "$code"
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=gpu_figures build=$root/build/measure_gpu torch=yes quick=() native=yes parts=0
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) help && exit 0 ;;
    --quick) quick=(--quick) && arguments+=(--quick) ;;
    --no-torch) torch=no ;;
    --out | --build | --gpu | --part)
      [ $# -ge 2 ] || die 64 "$1 needs a value"
      case $1 in
        --out) out=$2 ;;
        --build) build=$2 ;;
        --gpu) arguments+=("$1" "$2") ;;
        --part)
          parts=$((parts + 1))
          if [ "$2" = torch ]; then torch=only; else arguments+=("$1" "$2"); fi
          ;;
      esac
      shift
      ;;
    *) die 64 "unknown option: $1; allowed: --out, --build, --gpu, --part, --quick, --no-torch, --help" ;;
  esac
  shift
done
if [ "$torch" = only ]; then
  [ "$parts" -gt 1 ] || native=no
  torch=yes
elif [ "$parts" -gt 0 ]; then
  torch=no
fi
mkdir -p "$out" || die 73 "cannot create the folder $out"
mkdir -p "$build" || die 73 "cannot create the folder $build"
out=$(cd "$out" && pwd)
build=$(cd "$build" && pwd)

# The client's own sources, and a stand-in for the one library that they need.
build_program() {
  local program=$build/measure_gpu sources=() compiler=${CXX:-g++}
  sources=("$root"/tools/measure_gpu/*.cpp "$root"/src/training/clock_control/*.cpp
    "$root"/src/training/client/{cuda_driver,device_progress,background_thread}.cpp "$root"/src/training/device/{gpu,ceiling_gpu}.cpp
    "$root/src/base/owned_fd.cpp")
  if [ -x "$program" ] && [ -z "$(find "$root/src" "$root/tools/measure_gpu" -newer "$program" -type f -print -quit)" ]; then
    return 0
  fi
  command -v "${compiler%% *}" >/dev/null || die 74 "no C++ compiler: $compiler; \$CXX names another one"
  echo "measure_gpu.sh: building" >&2
  rm -f "$build"/*.o
  # shellcheck disable=SC2086  # $CXX and $CXXFLAGS may hold several words
  if ! printf '%s\0' "${sources[@]}" |
    (cd "$build" && xargs -0 -n 1 -P "$(nproc)" $compiler -std=c++20 ${CXXFLAGS:--O2} -c -DPERSEUS_VERSION='"measure"' \
      -I"$root/src" -I"$root/tools/measure_gpu" -I"$root/tools/measure_gpu/without_fmt") ||
    ! $compiler -pthread "$build"/*.o -o "$program.new" -ldl; then
    die 74 "the program does not build with $compiler (C++20 is needed)"
  fi
  mv "$program.new" "$program"
}

result=0
if [ "$native" = yes ]; then
  build_program
  timeout --kill-after=10 360 "$build/measure_gpu" --markdown "$out/gpu.md" --json "$out/gpu.json" "${arguments[@]}" ||
    result=$?
  case $result in
    0 | 70) ;;
    124 | 137) die 124 "the GPU did not answer in time; $out/gpu.md has the parts that were measured" ;;
    *) exit "$result" ;;
  esac
  cat "$out/gpu.md"
fi
if [ "$torch" = yes ]; then
  timeout --kill-after=10 150 "$root/tools/measure_gpu/torch_overhead.sh" "$root" "$build" "$out" "${quick[@]}" ||
    echo "measure_gpu.sh: the torch part failed or took more than 150 s" >&2
fi
echo "measure_gpu.sh: no clock, power limit or mode was changed; figures are in $out" >&2
exit "$result"
