#!/usr/bin/env bash
# Runs in each fresh Debian that test_debs.sh makes: installs the packages in /debs, runs the commands of docs/plan.md and the
# demo, builds a C program, installs the wheel in an environment of its own, and removes everything.
set -euo pipefail
cd /debs
wrong() { echo "wrong: $1" && exit 1; }
apt-get install -y -qq --no-install-recommends ./*.deb gcc libc6-dev pkgconf man-db >/tmp/apt.log 2>&1 ||
  { cat /tmp/apt.log && exit 1; }

perseus --version
getent passwd perseus >/dev/null || wrong "there is no user perseus"
[ -L /etc/systemd/system/multi-user.target.wants/perseus-server.service ] || wrong "perseus-server is not enabled"
[ -L /etc/systemd/system/multi-user.target.wants/perseus-clockd.service ] || wrong "perseus-clockd is not enabled"
[ "$(perseus serve --config /etc/perseus/server.toml --print-config)" = "$(perseus serve --print-config)" ] ||
  wrong "the installed settings are not the defaults"

# The commands of docs/plan.md, beside the installed sample data.
cd /tmp
ln -s /usr/share/doc/perseus/data data
count=0
while read -r command; do
  echo "+ $command"
  sh -c "$command" >/tmp/out 2>&1 || { cat /tmp/out && wrong "$command"; }
  count=$((count + 1))
done < <(sed -n 's/^    \(perseus [^#]*\).*/\1/p' /debs/plan.md)
[ $count -ge 4 ] || wrong "docs/plan.md has $count commands"
perseus demo --known-profile --iterations 2 --dp 1 --out demo >/tmp/out 2>&1 ||
  { cat /tmp/out && wrong "the demo"; }
for page in perseus perseus-plan perseus-job perseus-clockd; do
  man -w $page >/dev/null || wrong "there is no page $page"
done

cat >main.c <<'C'
#include <perseus/perseus.h>
#include <stdio.h>
int main(void) { return puts(perseus_version()) < 0; }
C
# shellcheck disable=SC2046 # flags are words
cc main.c -o main $(pkg-config --cflags --libs perseus)
[ "perseus $(./main)" = "$(perseus --version | cut -d' ' -f1,2)" ] || wrong "the C program has another version"

for wheel in /debs/*.whl; do
  [ -e "$wheel" ] || continue
  apt-get install -y -qq --no-install-recommends python3-venv >/tmp/apt.log 2>&1 || { cat /tmp/apt.log && exit 1; }
  python3 -m venv /tmp/environment
  /tmp/environment/bin/pip install --quiet --no-index --no-deps "$wheel"
  # Its own library, not that of the packages.
  loaded=$(cd / && /tmp/environment/bin/python -c '
from perseus import library
loaded = library.load()
print(loaded.version().decode(), loaded.path)')
  case $loaded in
    "$(./main) /tmp/environment/"*) ;;
    *) wrong "the wheel loads another library: $loaded" ;;
  esac
done

mkdir -p /var/lib/perseus
packages=(perseus perseus-server perseus-client libperseus-dev)
apt-get remove -y -qq "${packages[@]}" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log && wrong "remove"; }
[ -e /etc/perseus/server.toml ] || wrong "remove took the configuration"
[ -d /var/lib/perseus ] || wrong "remove took the database"
dpkg --purge "${packages[@]}" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log && wrong "purge"; }
left=$(find /etc /usr /var/lib/perseus /var/lib/systemd -name '*perseus*' 2>/dev/null || true)
[ -z "$left" ] || wrong "left after purge: $left"
