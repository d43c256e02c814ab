#!/usr/bin/env bash
# Has g++ read, without making anything of it, what a build with g++ has not compiled yet: the thread sanitizer's build
# makes a part, and both compilers must take everything without a warning.
#
# usage: check_gcc.sh BUILD_DIR
set -euo pipefail
cd "$1"
# print_layout.cpp includes what only a build makes.
commands=$(ninja -n -v all | sed -nE 's/^\[[0-9]+\/[0-9]+\] (.* )-MD -MT [^ ]+ -MF [^ ]+ -o [^ ]+ (-c [^ ]+)$/\1-fsyntax-only \2/p' |
  grep -v '/print_layout.cpp$' || true)
[ -n "$commands" ] || { echo "g++: nothing was left to read"; exit 0; }
xargs -d '\n' -P "$(nproc)" -n 1 sh -c <<<"$commands" || { echo "g++: not all compile without a warning"; exit 1; }
echo "g++: $(wc -l <<<"$commands") files read"
