# shellcheck shell=bash
# Sourced by build.sh and debian.sh: completes a tree and imports it as an image.
#
# A tree is the root file system of an image. It contains redis-server and redis-cli in usr/local/bin, and the loader and
# the libraries at the paths that the programs use.

# finish_tree TREE adds the files that every image has.
finish_tree() {
  mkdir -p "$1/data" "$1/tmp" "$1/etc"
  chmod 1777 "$1/tmp" "$1/data"
  printf 'redis:x:999:999::/data:/\n' >"$1/etc/passwd"
  printf 'redis:x:999:\n' >"$1/etc/group"
}

# import_tree TREE IMAGE makes the image and starts it once. LC_ALL: newer servers exit if the locale is missing.
import_tree() {
  tar -C "$1" --owner=0 --group=0 --numeric-owner -c . | docker import \
    --change 'ENV PATH=/usr/local/bin LC_ALL=C' \
    --change 'WORKDIR /data' \
    --change 'USER 999:999' \
    --change 'EXPOSE 6379' \
    --change 'CMD ["redis-server"]' \
    - "$2" >/dev/null
  docker run --rm "$2" redis-server --version >/dev/null
}

# have_engine reports whether a Docker engine answers.
have_engine() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

# version_of PROGRAM prints the version that a server's program reports, such as 7.0.15.
version_of() { "$1" --version | sed -nE 's/.*\bv=([0-9.]+).*/\1/p'; }
