#!/usr/bin/env bash
# Builds the images of deploy/container with buildah from Debian's own packages, and runs what they start.
#
# usage: test_images.sh RELEASE_BUILD    77 where it cannot run, and what for
# The packages of RELEASE_BUILD take the place of the Containerfile's first stage, which would compile them again, and a root
# that debootstrap makes that of debian:bookworm-slim: no registry of images is asked.
set -euo pipefail
skip() { echo "skipped: $1" && exit 77; }
[ -x "$1/apps/perseus" ] || skip "$1 has no program; build its target 'packaged'"
for tool in buildah debootstrap; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
[ "$(id -u)" -eq 0 ] || skip "debootstrap needs root"
build=$(realpath "$1")
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")

scratch=$(mktemp -d "${TMPDIR:-/dev/shm}/perseus-images-XXXXXX")
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
images() { buildah --root "$scratch/storage" --runroot "$scratch/run" "$@"; }
trap 'images umount --all >/dev/null 2>&1; rm -rf "$scratch"' EXIT

(cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch/built/packages" >"$scratch/cpack.log" 2>&1) ||
  { cat "$scratch/cpack.log" && exit 1; }
mirror=${PERSEUS_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)}
debootstrap --variant=minbase bookworm "$scratch/bookworm" "$mirror" >"$scratch/debootstrap.log" 2>&1 ||
  skip "debootstrap bookworm failed: $(tail -n 1 "$scratch/debootstrap.log")"
base=$(images from scratch)
cp -a "$scratch/bookworm/." "$(images mount "$base")"
images umount "$base" >/dev/null
images commit --quiet --rm "$base" localhost/debian:bookworm-slim >/dev/null
rm -rf "$scratch/bookworm"

for target in server clockd; do
  images bud --quiet --pull-never --build-context "build=$scratch/built" --file "$repository/deploy/container/Containerfile" \
    --target $target --tag perseus-$target "$repository" >"$scratch/bud.log" 2>&1 || { cat "$scratch/bud.log" && exit 1; }
  echo "built: $target"
done

server=$(images from --pull-never localhost/perseus-server)
same() { [ "$2" = "$3" ] || { echo "$1 is '$2', not '$3'" && exit 1; }; }
same "the server's user" "$(images run "$server" -- id -u)" 65532
same "the server's program and arguments" "$(images inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$server")" \
  "[perseus serve] [--listen 0.0.0.0:7787 --data /var/lib/perseus]"
images run "$server" -- bash -c '
  perseus serve --listen 127.0.0.1:0 --data /var/lib/perseus >/tmp/serve.log 2>&1 &
  for _ in $(seq 600); do
    grep -q "serving on http" /tmp/serve.log && break
    kill -0 $! || { cat /tmp/serve.log && exit 1; }
    sleep 0.1
  done
  address=$(sed -n "s/.*serving on \(http[^ ]*\).*/\1/p" /tmp/serve.log | head -n 1)
  perseus job list --server "$address" && kill $! && wait $!'
echo "the server answers as user 65532"
clockd=$(images from --pull-never localhost/perseus-clockd)
same "the daemon's program" "$(images inspect --format '{{.OCIv1.Config.Entrypoint}}' "$clockd")" "[perseus-clockd --daemon]"
same "the daemon's version" "$(images run "$clockd" -- perseus-clockd --version)" "$(images run "$server" -- perseus-clockd --version)"
echo "both images run"
