#!/usr/bin/env bash
# Fetches the versions of Redis and Valkey in Debian's suites for the integration tests: each one as a tree with a
# program that runs it (for processes), and as an image if a Docker engine runs (for containers).
#
#   integration/image/debian.sh            makes missing trees and images, and prints a line per version:
#                                          <version> <program> <image, or "-" without an engine>
#   integration/image/debian.sh -n         only prints the existing ones
#
# The trees are in ${REDLOCK_TEST_TREES:-~/.cache/redlock-test}; remove that directory to fetch them again. Packages
# are only downloaded and unpacked: nothing is installed, and apt's own state is not touched. They come from the Debian
# archive that this machine is configured with, and are checked with the keys of debian-archive-keyring. Unavailable
# versions are reported and skipped, without an error.
set -euo pipefail
export LC_ALL=C
# shellcheck source=common.sh
source "$(dirname "$0")/common.sh"

trees=${REDLOCK_TEST_TREES:-${XDG_CACHE_HOME:-$HOME/.cache}/redlock-test}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# If two suites have the same version, the later suite is used.
sources=(
  "bookworm redis-server" # 7.0
  "trixie redis-server"   # 8.0
  "sid redis-server"      # the newest
  "trixie valkey-server"  # 8.1
  "sid valkey-server"     # the newest
)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tell() { echo "debian.sh: $*" >&2; }

# archives prints the addresses of the Debian archive in this machine's configuration.
archives() {
  [ -e "$keyring" ] && command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 0
  local codename
  codename=$(. /etc/os-release && echo "${ID:-}:${VERSION_CODENAME:-sid}")
  [[ $codename == debian:* ]] || return 0
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="${codename#debian:}" '$2 == release && $3 == "main" { print $1 }' | sort -u
}

# fetch ARCHIVE SUITE PACKAGE downloads a package and all its dependencies, as if nothing were installed.
fetch() {
  local dir=$work/apt
  rm -rf "$dir"
  mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial"
  : >"$dir/status"
  echo "deb [signed-by=$keyring] $1 $2 main" >"$dir/sources.list"
  local options=(
    -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State="$dir/state"
    -o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User="$(id -un)"
    -o Acquire::Languages=none -o APT::Install-Recommends=false -o Acquire::http::Timeout=20 -o Acquire::Retries=1
  )
  apt-get "${options[@]}" update &&
    apt-get "${options[@]}" install --download-only -y "$3"
}

# unpack PACKAGE TREE unpacks from the fetched packages the files that the tree needs, as listed by the loader.
unpack() {
  local all=$work/all tree=$2 server=$1 libs interp triplet file name
  local -r prefix=${server%-server}
  rm -rf "$all"
  mkdir -p "$all"
  # In addition to its own package, a server needs only libraries.
  for file in "$work"/apt/cache/archives/{lib,lua,zlib,"$prefix"}*.deb; do dpkg -x "$file" "$all"; done
  libs=$(dirname "$(find "$all" -name libc.so.6 | head -1)")
  triplet=$(basename "$libs")
  # The link to the loader that the program names is absolute in older suites; the one next to the library is not.
  interp=$(grep -aoE '/lib[a-z0-9_/.-]*/ld[a-z0-9_.-]*so\.[0-9]+' "$all/usr/bin/$server" | head -1)
  install -D -m 0755 "$(readlink -f "$libs/$(basename "$interp")")" "$tree/root$interp"
  for name in server cli; do
    install -D -m 0755 "$(readlink -f "$all/usr/bin/$prefix-$name")" "$tree/root/usr/local/bin/$prefix-$name"
    [ "$prefix" = redis ] || ln -s "$prefix-$name" "$tree/root/usr/local/bin/redis-$name"
    "$tree/root$interp" --library-path "$all/lib/$triplet:$all/usr/lib/$triplet" --list "$all/usr/bin/$prefix-$name" |
      grep -oE '/[^ ]+' | grep "^$all" | sort -u >"$work/needed"
    while read -r file; do
      install -D -m 0644 "$(readlink -f "$file")" "$tree/root/lib/$triplet/$(basename "$file")"
    done <"$work/needed"
  done
  finish_tree "$tree/root"
  cat >"$tree/$server" <<END
#!/bin/sh
# Runs $server of this tree with the libraries of this tree.
root=\$(dirname "\$(readlink -f "\$0")")/root
exec "\$root$interp" --library-path "\$root/lib/$triplet" "\$root/usr/local/bin/$server" "\$@"
END
  chmod 0755 "$tree/$server"
}

# make_tree SUITE PACKAGE keeps the tree only if its server runs.
make_tree() {
  local archive tree="$trees/$1-$2"
  for archive in "${found[@]}"; do
    if fetch "$archive" "$1" "$2" >"$work/log" 2>&1; then
      rm -rf "$work/tree"
      if (set -e; unpack "$2" "$work/tree") >"$work/log" 2>&1 && [ -n "$(version_of "$work/tree/$2")" ]; then
        mkdir -p "$trees"
        rm -rf "$tree"
        mv "$work/tree" "$tree"
        return
      fi
    fi
    tell "no $2 of $1: $(grep -v '^W:' "$work/log" | tail -1)"
  done
}

if [ "${1:-}" != -n ]; then
  mapfile -t found < <(archives)
  if [ ${#found[@]} -eq 0 ]; then
    tell "this machine has no Debian archive whose keys are installed; only existing trees are used"
  fi
  for source in "${sources[@]}"; do
    read -r suite package <<<"$source"
    [ -x "$trees/$suite-$package/$package" ] || make_tree "$suite" "$package"
  done
fi

engine=
if have_engine; then engine=yes; fi
declare -A program
for source in "${sources[@]}"; do
  read -r suite package <<<"$source"
  path=$trees/$suite-$package/$package
  if [ -x "$path" ]; then
    version=$(version_of "$path")
    program[${package%-server}:$(cut -d. -f1,2 <<<"$version")]="$version $path"
  fi
done
for key in $(printf '%s\n' "${!program[@]}" | sort -V); do
  read -r version path <<<"${program[$key]}"
  image=-
  if [ -n "$engine" ]; then
    image=redlock-test/$key
    id=$(dirname "$path")/image # of the image made from this tree
    if [ "$(cat "$id" 2>/dev/null)" != "$(docker image inspect -f '{{.Id}}' "$image" 2>/dev/null || echo none)" ]; then
      import_tree "$(dirname "$path")/root" "$image"
      docker image inspect -f '{{.Id}}' "$image" >"$id"
    fi
    docker tag "$image" "${image%.*}" # redis:8 is the newest 8.x, because the versions are sorted
  fi
  echo "${key%%:*}-$version $path $image"
done
