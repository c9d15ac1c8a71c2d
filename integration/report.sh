#!/usr/bin/env bash
# Runs every scenario, one at a time, and puts what their users saw into the table of docs/faults.md, between its two
# marks.
# Takes about four minutes; let the machine do nothing else meanwhile.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C

rows=$(mktemp)
trap 'rm -f "$rows" "$rows.log" "$rows.md"' EXIT
REDLOCK_TEST_REPORT=$rows go test -count=1 -timeout 30m -parallel 1 -run '^TestScenarios$' -v . >"$rows.log" || { grep -vE "^=== " "$rows.log" | tail -50 >&2; exit 1; }
awk -v rows="$rows" '
  /<!-- faults: end -->/ { inside = 0 }
  !inside { print }
  /<!-- faults: begin/ {
    inside = 1
    print "| fault | calls that got the lock | median | worst | lost | what the others read |"
    print "| --- | --- | --- | --- | --- | --- |"
    while (("sort " rows) | getline row) { sub(/^[0-9]+ /, "", row); print row }
  }
' ../docs/faults.md >"$rows.md"
cat "$rows.md" >../docs/faults.md
