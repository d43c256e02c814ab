# Sourced by ./run and ./test: install_packages PACKAGE... installs missing Debian packages.
#
# Calls apt only if a package is missing, as root or through sudo, and prints what it installs.

install_packages() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null; then
    echo "$0: not a Debian system, so nothing is installed; these Debian 12 packages (or what they are called here) are needed: $*" >&2
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "$0: please install, as root (there is no sudo here): apt-get install --no-install-recommends ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "$0: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
    echo "$0: apt-get could not install ${missing[*]} (Debian 12 has them all)" >&2
    return 1
  }
}

PERSEUS_BUILD_PACKAGES=(g++ cmake ninja-build libfmt-dev libcli11-dev libboost-json1.81-dev libtomlplusplus-dev libutfcpp-dev libeigen3-dev zlib1g-dev libsimdjson-dev libssl-dev libspdlog-dev
  libsqlitecpp-dev libsqlite3-dev pkg-config libpq-dev prometheus-cpp-dev)
PERSEUS_TEST_PACKAGES=(libgtest-dev libgmock-dev librapidcheck-dev coinor-libclp-dev libbenchmark-dev postgresql prometheus python3 python3-jsonschema python3-yaml python3-kubernetes golang-go golang-github-masterminds-sprig-dev golang-gopkg-yaml.v3-dev groff mandoc zsh fish shellcheck python3-pip python3-setuptools python3-wheel chromium mkdocs mkdocs-material
  lintian debootstrap dpkg-dev clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 lld-14)
# For the web bundle and the accessibility tests. Node from elsewhere brings its own npm, which Debian's would conflict with.
command -v npm >/dev/null || PERSEUS_TEST_PACKAGES+=(nodejs npm)
