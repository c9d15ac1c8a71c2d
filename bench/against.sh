#!/usr/bin/env bash
# Compares this tree with another commit: runs one round of each benchmark alternately, ROUNDS times, and prints what
# benchstat says of the figures. With fewer than four rounds no difference is significant; with fewer than six there is
# no confidence interval.
#
#   bench/against.sh COMMIT ROUNDS [FLAG...]
#   bench/against.sh HEAD~1 10 -scenario cost -impl library,floor
#
# Both benchmarks get the flags. Run it on an idle machine. It needs jq, and checks the other commit out in a temporary
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
    "$dir/$which" -json -rounds 1 "$@" 2>/dev/null | jq -r '.figures[] | "Benchmark\(.scenario)/\(.case)/\(.who)" as $name
      | ($name | gsub("[ ,]+"; "_")) + " 1 \(.median) " + ("\(.metric) \(.unit)" | gsub("[ /]+"; "-") | rtrimstr("-"))' >>"$dir/$which.txt"
  done
done
cd bench && go run golang.org/x/perf/cmd/benchstat "$dir/old.txt" "$dir/new.txt"
