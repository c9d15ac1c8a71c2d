#!/usr/bin/env bash
# Runs the integration tests with every version of Redis and Valkey that image/debian.sh can get: in containers if a
# Docker engine runs, and as processes. The newest Redis and the newest Valkey run all tests, the others the short set.
#
#   integration/matrix.sh            everything: about half an hour on two cores
#   integration/matrix.sh -short     the short set on every version, as processes only: about three minutes
#   integration/matrix.sh -other     like -short, without the newest Redis, which the tests use by default
#
# The short sets run two at a time. The script prints a line for each run, and the output of failed runs. The exit status
# is that of the worst run.
set -uo pipefail
cd "$(dirname "$0")"
export LC_ALL=C

mode=${1:-all}
versions=$(image/debian.sh) || exit 1
if [ -z "$versions" ]; then
  echo "matrix.sh: image/debian.sh found no version of Redis or Valkey" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/tests" . && go test -c -o "$work/identity" ../internal/transport || exit 1

newest() { grep "^$1-" <<<"$versions" | tail -1 | cut -d' ' -f1; }

# run NAME WAY SERVER IMAGE ARGUMENT... runs the tests once.
run() {
  local name=$1 way=$2 server=$3 image=$4 began=$SECONDS verdict=ok log
  shift 4
  log=$work/$name.$way
  REDLOCK_TEST_MASTERS=$way REDLOCK_REDIS_SERVER=$server REDLOCK_TEST_IMAGE=$image \
    "$work/tests" -test.timeout 20m "$@" </dev/null >"$log" 2>&1 || verdict=FAILED
  if [ "$way" = process ]; then # effects of a backup, a replica and a failover on the identity of this version's server
    (cd ../internal/transport && REDLOCK_REDIS_SERVER=$server "$work/identity" -test.timeout 10m \
      -test.run '^TestIdentity') </dev/null >>"$log" 2>&1 || verdict=FAILED
    if grep -q 'no tests to run' "$log"; then verdict=FAILED; fi
  fi
  printf '%-6s %-14s %-10s %-9s %4ss\n' "$verdict" "$name" "$way" "${*:-everything}" "$((SECONDS - began))"
  if [ "$verdict" = FAILED ]; then
    : >"$work/failed"
    tail -100 "$log"
  fi
}

while read -r name server image; do
  if [ "$mode" = all ]; then
    set -- -test.short
    if [ "$name" = "$(newest redis)" ] || [ "$name" = "$(newest valkey)" ]; then set -- -long; fi
    run "$name" process "$server" "" "$@"
    if [ "$image" != - ]; then run "$name" docker "" "$image" "$@"; fi
  elif [ "$mode" != -other ] || [ "$name" != "$(newest redis)" ]; then
    run "$name" process "$server" "" -test.short &
    if [ "$(jobs -rp | wc -l)" -ge 2 ]; then wait -n; fi
  fi
done <<<"$versions"
wait
[ ! -e "$work/failed" ]
