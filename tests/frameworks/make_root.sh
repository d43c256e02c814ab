#!/usr/bin/env bash
# Makes a root with PyTorch for CPUs, in which tests run real training frameworks.
#
# usage: make_root.sh ROOT [SUITE [OPTION...]]    does nothing where ROOT is complete; 77 where it cannot be made
#
# SUITE: a release of Debian or Ubuntu. Default: trixie (Debian 13), which has PyTorch 2.6. OPTIONs go to debootstrap, for
# example --components=main,universe for Ubuntu.
# It takes some minutes and 1.3 GB, and needs root, debootstrap (installed if missing) and a Debian mirror:
# $PERSEUS_DEBIAN_MIRROR, else the one that this system installs from.
set -euo pipefail
root=$1 suite=${2:-trixie}
shift $(($# < 2 ? $# : 2))
packages=python3,python3-torch
# What Megatron Core, DeepSpeed and Hugging Face's packages import; added to a root that was made without them. Other suites
# may lack some.
more=(python3-numpy python3-packaging python3-psutil python3-hjson python3-cpuinfo python3-pydantic python3-einops
  python3-msgpack python3-tqdm python3-safetensors python3-regex)
not_possible() { echo "no root with PyTorch can be made: $*" && exit 77; }

add_more() {
  [ "$suite" = trixie ] || return 0
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  chroot "$root" apt-get install --quiet --yes --no-install-recommends "${more[@]}" >>"$root.log" 2>&1 ||
    not_possible "apt-get failed: $(tail -n 1 "$root.log")"
  rm -f "$root"/var/cache/apt/archives/*.deb
  echo "${more[*]}" >"$root/complete.frameworks"
}

[ "$(cat "$root/complete.frameworks" 2>/dev/null)" != "${more[*]}" ] || exit 0
[ "$(id -u)" -eq 0 ] || not_possible "this needs root"
if [ -e "$root/complete" ]; then
  add_more
  exit 0
fi
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/install_packages.sh"
install_packages debootstrap || not_possible "debootstrap is not here"
mirror=${PERSEUS_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)}

rm -rf "$root"
mkdir -p "$root"
log=$root.log
scripts=/usr/share/debootstrap/scripts
[ -e "$scripts/$suite" ] && script=$scripts/$suite || script=$scripts/sid # older than the suite
echo "debootstrap installs $suite with $packages in $root, log in $log"
nice debootstrap --variant=minbase --include="$packages" "$@" "$suite" "$root" "$mirror" "$script" >"$log" 2>&1 ||
  not_possible "debootstrap failed: $(tail -n 1 "$log")"
rm -f "$root"/var/cache/apt/archives/*.deb
touch "$root/complete"
add_more
