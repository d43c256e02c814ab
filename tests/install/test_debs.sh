#!/usr/bin/env bash
# Makes the Debian packages, has lintian read them, installs them in a fresh Debian 12, uses them there, and removes them.
#
# usage: test_debs.sh RELEASE_BUILD    77 where it cannot run, and what for
# PERSEUS_DEBIAN_ROOT names a root that debootstrap made, to be copied; without it, debootstrap makes one.
# In memory, since dpkg syncs each file: on a busy disk debootstrap took nine minutes.
set -euo pipefail
skip() { echo "skipped: $1" && exit 77; }
[ -x "$1/apps/perseus" ] || skip "$1 has no program; build the release preset"
for tool in debootstrap lintian dpkg-shlibdeps unshare; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
[ "$(id -u)" -eq 0 ] || skip "a root of another Debian can be entered by root only"
build=$(realpath "$1")
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")

scratch=$(mktemp -d "${TMPDIR:-/dev/shm}/perseus-debs-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch/packages" >"$scratch/cpack.log" 2>&1) ||
  { cat "$scratch/cpack.log" && exit 1; }
debs=("$scratch"/packages/*.deb)
[ ${#debs[@]} -eq 4 ] || { echo "${#debs[@]} packages: ${debs[*]}" && exit 1; }
echo "lintian"
# The packages are not for upload to Debian.
lintian --suppress-tags initial-upload-closes-no-bugs --fail-on error,warning --tag-display-limit 0 --allow-root "${debs[@]}"

root=$scratch/root
mirror=${PERSEUS_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)}
if [ -n "${PERSEUS_DEBIAN_ROOT:-}" ]; then
  cp -a "$PERSEUS_DEBIAN_ROOT" "$root"
else
  echo "debootstrap"
  debootstrap --variant=minbase bookworm "$root" "$mirror" >"$scratch/debootstrap.log" 2>&1 ||
    skip "debootstrap failed: $(tail -n 1 "$scratch/debootstrap.log")"
fi
mkdir "$root/debs"
cp "${debs[@]}" "$root/debs"
cp "$repository/README.md" "$root/debs"
cp "$repository/tests/install/use_debs.sh" "$root/debs"
unshare --mount --pid --fork --kill-child bash -c '
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    chroot "$1" bash /debs/use_debs.sh' in_root "$root"
