#!/usr/bin/env bash
# Checks that web/dist is what web/src and the locked packages build to.  usage: check_web_bundle.sh [ROOT]
# Needs Node, npm and the package registry; if one is missing, prints which and exits with 77 (skipped).
set -euo pipefail
root=$(cd "${1:-$(dirname "$0")/..}" && pwd)

skip() {
  echo "web bundle: skipped, $1"
  exit 77
}

if grep -q '"resolved"' "$root/web/package-lock.json"; then
  echo "web bundle: web/package-lock.json names where packages come from; run npm install in web/, whose .npmrc leaves that out" >&2
  exit 1
fi
command -v node >/dev/null || skip "no node"
command -v npm >/dev/null || skip "no npm"
npm ping >/dev/null 2>&1 || skip "the package registry cannot be reached"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$root/web/src" "$root/web/build.mjs" "$root/web/package.json" "$root/web/package-lock.json" "$root/web/.npmrc" "$scratch"
cd "$scratch"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
mkdir built
node build.mjs built
if ! diff -rq built "$root/web/dist"; then
  echo "web bundle: web/dist is not what web/src builds to; run 'npm ci && npm run build' in web/" >&2
  exit 1
fi
echo "web bundle: ok"
