#!/usr/bin/env bash
# Checks that clang-format 14 would change nothing.  usage: check_format.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
mapfile -t files < <(find . \( -name build -o -name out -o -name '.*' ! -name . \) -prune -o -name '*.h' -print -o -name '*.cpp' -print -o -name '*.c' -print)
clang-format-14 --dry-run -Werror "${files[@]}"
echo "format: ok, ${#files[@]} files"
