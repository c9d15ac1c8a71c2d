#!/usr/bin/env bash
# Builds the image redlock-test/redis:local from the installed redis-server and the libraries that it is linked with, so
# that the integration tests have an image if no registry can be reached. The script needs a Docker engine. debian.sh in
# this directory makes images of other versions.
set -euo pipefail
export LC_ALL=C
# shellcheck source=common.sh
source "$(dirname "$0")/common.sh"

image=${1:-redlock-test/redis:local}
for program in redis-server redis-cli docker ldd tar; do
  if ! command -v "$program" >/dev/null; then
    echo "build.sh: $program is not installed (Debian: redis-server and redis-tools; an engine: docker.io)" >&2
    exit 1
  fi
done

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# install_program PROGRAM copies a program, and each library that the loader finds for the program, into the image. Each
# library keeps its path.
install_program() {
  local file
  install -D -m 0755 "$(readlink -f "$(command -v "$1")")" "$root/usr/local/bin/$1"
  ldd "$(command -v "$1")" | grep -o '/[^ ]*' | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L --preserve=mode "$file" "$root$file"
  done
}
install_program redis-server
install_program redis-cli
finish_tree "$root"
import_tree "$root" "$image"
echo "built $image of redis-server $(version_of redis-server)"
