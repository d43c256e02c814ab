#!/usr/bin/env bash
# Runs torch_overhead.py if PyTorch, a GPU and libperseus.so are available; else torch.md gives the reason.
# usage: torch_overhead.sh SOURCE_FOLDER BUILD_FOLDER OUTPUT_FOLDER [--quick]
set -euo pipefail
root=$1 build=$2 out=$3
shift 3
python=${PYTHON:-python3}

skip() {
  printf '## PyTorch\n\n- skipped: %s\n' "$1" | tee "$out/torch.md"
  exit 0
}

command -v "$python" >/dev/null || skip "no $python"
"$python" -c 'import torch' 2>/dev/null || skip "$python has no PyTorch"
"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || skip "PyTorch sees no GPU"

library=${PERSEUS_LIBRARY:-}
if [ -z "$library" ]; then
  for candidate in "$root/python/perseus/lib/libperseus.so" "$root/build/release/libperseus.so" \
    "$build/client/libperseus.so"; do
    [ -e "$candidate" ] && library=$candidate && break
  done
fi
if [ -z "$library" ]; then
  echo "measure_gpu.sh: building libperseus.so" >&2
  log=$build/client.log
  if ! { cmake -S "$root" -B "$build/client" -DCMAKE_BUILD_TYPE=Release -DPERSEUS_TESTS=OFF &&
    cmake --build "$build/client" --target libperseus --parallel; } >"$log" 2>&1; then
    why=$(grep -m 1 -io 'Find[a-z0-9]*\.cmake\|could not find.*\|fatal error:.*' "$log" || true)
    skip "libperseus.so does not build here${why:+ ($why)}; see $log, or name one in \$PERSEUS_LIBRARY"
  fi
  library=$build/client/libperseus.so
fi

PERSEUS_LIBRARY=$library PERSEUS_ADVICE_ONLY=1 PYTHONPATH=$root/python${PYTHONPATH:+:$PYTHONPATH} \
  "$python" "$root/tools/measure_gpu/torch_overhead.py" "$out/torch.md" "$out/torch.json" "$@"
