#!/usr/bin/env bash
# Compares this tree with another commit: runs one round of each benchmark alternately, ROUNDS times, and prints the
# significant differences.
#
#   bench/against.sh COMMIT ROUNDS [FLAG...]
#   bench/against.sh HEAD~1 5 -scenario pairs -goroutines 1,64
#
# The script passes the flags to both benchmarks. Run it on an idle machine. It checks the other commit out in a temporary
# directory, which it removes at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$1 rounds=$2
shift 2

dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree" 2>/dev/null || true; rm -rf "$dir"' EXIT
git worktree add -q --detach "$dir/tree" "$commit"
go build -C "$dir/tree" -o "$dir/old" ./bench
go build -o "$dir/new" ./bench
for ((round = 1; round <= rounds; round++)); do
  for which in old new; do
    echo "round $round of $rounds: $which" >&2
    "$dir/$which" -rounds 1 -out "$dir/$which.$round.json" "$@" >/dev/null
  done
done
list() { printf '%s\n' "$dir/$1".*.json | paste -sd, -; }
"$dir/new" -from "$(list new)" -compare "$(list old)"
