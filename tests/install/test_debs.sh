#!/usr/bin/env bash
# Makes the Debian packages, has lintian read them, and in a fresh Debian 12 and a fresh Debian 13 installs them and the wheel,
# uses them, and removes them.
#
# usage: test_debs.sh RELEASE_BUILD    77 where it cannot run, and what for
# PERSEUS_DEBIAN_ROOTS names a folder with roots that debootstrap made, bookworm and trixie, to be copied; without it,
# debootstrap makes them. In memory, since dpkg syncs each file: on a busy disk debootstrap took nine minutes.
set -euo pipefail
skip() { echo "skipped: $1" && exit 77; }
[ -x "$1/apps/perseus" ] || skip "$1 has no program; build its target 'packaged'"
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

mirror=${PERSEUS_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)}

# root_of SUITE: makes it; fails where it cannot.
root_of() {
  if [ -n "${PERSEUS_DEBIAN_ROOTS:-}" ]; then
    cp -a "$PERSEUS_DEBIAN_ROOTS/$1" "$scratch/$1"
    return
  fi
  echo "debootstrap $1"
  debootstrap --variant=minbase "$1" "$scratch/$1" "$mirror" >"$scratch/debootstrap.log" 2>&1
}

# used_in SUITE: the packages and the wheel in a fresh root of that suite.
used_in() {
  local root=$scratch/$1
  mkdir "$root/debs"
  cp "${debs[@]}" "$repository/docs/plan.md" "$repository/tests/install/use_debs.sh" "$root/debs"
  cp "$build"/wheel/perseus-*.whl "$root/debs" 2>/dev/null || echo "no wheel in $build/wheel; build its target 'perseus_wheel'"
  unshare --mount --pid --fork --kill-child bash -c '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      chroot "$1" bash /debs/use_debs.sh' in_root "$root"
  rm -rf "$root"
}

for suite in bookworm trixie; do
  root_of $suite || skip "debootstrap $suite failed: $(tail -n 1 "$scratch/debootstrap.log")"
  used_in $suite
  echo "$suite: installed, used, removed"
done
