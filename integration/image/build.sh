#!/usr/bin/env bash
# Builds the image redlock-test/redis:local out of the redis-server that is installed here, with the libraries that it
# is linked with, so that the integration tests have an image where no registry can be reached. Needs a Docker engine.
set -euo pipefail
export LC_ALL=C

image=${1:-redlock-test/redis:local}
for program in redis-server redis-cli docker ldd tar; do
  if ! command -v "$program" >/dev/null; then
    echo "build.sh: $program is not installed (Debian: redis-server and redis-tools; an engine: docker.io)" >&2
    exit 1
  fi
done

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# install_program puts a program into the image, and each library that the loader would find for it, at its own path.
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
mkdir -p "$root/data" "$root/tmp" "$root/etc"
chmod 1777 "$root/tmp" "$root/data"
printf 'redis:x:999:999::/data:/\n' >"$root/etc/passwd"
printf 'redis:x:999:\n' >"$root/etc/group"

tar -C "$root" --owner=0 --group=0 --numeric-owner -c . | docker import \
  --change 'ENV PATH=/usr/local/bin LC_ALL=C' \
  --change 'WORKDIR /data' \
  --change 'USER 999:999' \
  --change 'EXPOSE 6379' \
  --change 'CMD ["redis-server"]' \
  - "$image" >/dev/null

docker run --rm "$image" redis-server --version
echo "built $image"
