#!/usr/bin/env bash
# Makes the RPM packages and the tarball, checks that they run on RHEL 9's C and C++ runtime by the symbols that they import,
# installs the RPM packages below a folder, and plans and runs the demo there.
#
# usage: test_rpms.sh RELEASE_BUILD    77 where it cannot run, and what for
# No RHEL, Fedora or openSUSE was available: the scripts of the packages are only parsed.
set -euo pipefail
skip() { echo "skipped: $1" && exit 77; }
wrong() { echo "wrong: $1" && exit 1; }
[ -x "$1/apps/perseus" ] || skip "$1 has no program; build its target 'packaged'"
for tool in rpmbuild rpm objdump; do
  command -v "$tool" >/dev/null || skip "$tool is not installed (Debian: rpm, binutils)"
done
build=$(realpath "$1")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

scratch=$(mktemp -d "${TMPDIR:-/tmp}/perseus-rpms-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -G "RPM;TGZ" -B "$scratch/packages" >"$scratch/cpack.log" 2>&1) ||
  { cat "$scratch/cpack.log" && exit 1; }
rpms=("$scratch"/packages/*.rpm)
[ ${#rpms[@]} -eq 4 ] || wrong "${#rpms[@]} packages: ${rpms[*]}"

# What they need of the system: its runtime and the libraries that have one name everywhere.
needs=$(for rpm in "${rpms[@]}"; do rpm -qpR "$rpm"; done | sed 's/[ (].*//' | sort -u)
echo "needs: ${needs//$'\n'/ }"
for need in $needs; do
  case $need in
    /bin/sh | /bin/bash | /usr/bin/pkg-config | config | rpmlib | rtld | perseus | perseus-client | systemd | libperseus.so.1) ;;
    ld-linux-*.so.* | lib[cm].so.6 | libstdc++.so.6 | libgcc_s.so.1 | libz.so.1) ;;
    libssl.so.3 | libcrypto.so.3 | libpq.so.5 | libsqlite3.so.0) ;;
    *) wrong "a package needs $need" ;;
  esac
done
rpm -qp --qf '[%{FILEFLAGS:fflags} %{FILENAMES}\n]' "$scratch"/packages/perseus-server*.rpm |
  grep -q '^cn /etc/perseus/server.toml$' || wrong "server.toml is not configuration that an upgrade keeps"
for rpm in "${rpms[@]}"; do
  for script in POSTIN PREUN POSTUN; do
    rpm -qp --qf "%{$script}" "$rpm" | sed 's/^(none)$//' | sh -n || wrong "the script $script of $rpm"
  done
done

root=$scratch/root
mkdir -p "$root"
rpm --root "$root" --dbpath /var/lib/rpm -i --force-debian --nodeps --noscripts --ignorearch "${rpms[@]}"
mkdir "$scratch/tarball"
tar -xf "$scratch"/packages/perseus-*.tar.gz -C "$scratch/tarball"
for folder in "$root" "$scratch/tarball"; do
  "$here/oldest_system.py" "$folder" --within 2.34 3.4.29 || wrong "$folder does not run on RHEL 9"
done

"$root/usr/bin/perseus" plan "$root/usr/share/doc/perseus/data/sample_profile.csv" -m 4 --out "$scratch/plans" >"$scratch/out" 2>&1 ||
  { cat "$scratch/out" && wrong "perseus plan"; }
"$root/usr/bin/perseus" demo --known-profile --iterations 2 --dp 1 --out "$scratch/demo" \
  >"$scratch/out" 2>&1 || { cat "$scratch/out" && wrong "the demo"; }
flags=$(PKG_CONFIG_PATH=$root/usr/share/pkgconfig pkg-config --cflags --libs perseus)
printf '#include <perseus/perseus.h>\n#include <stdio.h>\nint main(void) { return puts(perseus_version()) < 0; }\n' >"$scratch/main.c"
# shellcheck disable=SC2086 # flags are words
cc "$scratch/main.c" -o "$scratch/main" $flags
[ "perseus $(LD_LIBRARY_PATH=$root/usr/lib "$scratch/main")" = "$("$root/usr/bin/perseus" --version | cut -d' ' -f1,2)" ] ||
  wrong "the C program has another version"
echo "RPM packages: installed, used"
