#!/usr/bin/env bash
# Makes a root of Debian 13 (trixie) with PyTorch 2.6 for CPUs, in which tests run real training frameworks.
#
# usage: make_root.sh ROOT    nothing is done where ROOT is complete; 77 where it cannot be made
#
# It takes some minutes and 1.3 GB, and needs root, debootstrap (installed if missing) and a Debian mirror:
# $PERSEUS_DEBIAN_MIRROR, else the one that this system installs from.
set -euo pipefail
root=$1
packages=python3,python3-torch
[ ! -e "$root/complete" ] || exit 0

not_possible() { echo "no root with PyTorch can be made: $*" && exit 77; }

[ "$(id -u)" -eq 0 ] || not_possible "this needs root"
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/install_packages.sh"
install_packages debootstrap || not_possible "debootstrap is not here"
mirror=${PERSEUS_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)}

rm -rf "$root"
mkdir -p "$root"
log=$root.log
echo "debootstrap installs Debian trixie with $packages in $root, log in $log"
nice debootstrap --variant=minbase --include="$packages" trixie "$root" "$mirror" >"$log" 2>&1 ||
  not_possible "debootstrap failed: $(tail -n 1 "$log")"
rm -f "$root"/var/cache/apt/archives/*.deb
touch "$root/complete"
