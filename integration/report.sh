#!/usr/bin/env bash
# Runs every scenario, one at a time, and writes the effects on users into the table of integration/faults.md, between the
# two marks. The script takes about four minutes on an otherwise idle machine. With arguments, it writes to another file,
# and runs the scenarios that match a regular expression: report.sh [FILE [REGEXP]].
set -euo pipefail
file=$(realpath "${1:-$(dirname "$0")/faults.md}")
cd "$(dirname "$0")"
export LC_ALL=C

rows=$(mktemp)
trap 'rm -f "$rows" "$rows.log" "$rows.md"' EXIT
REDLOCK_TEST_REPORT=$rows go test -count=1 -timeout 30m -parallel 1 -long -run "^TestScenarios\$/${2:-}" -v . >"$rows.log" ||
  { grep -vE "^=== " "$rows.log" | tail -50 >&2; exit 1; }
awk -v rows="$rows" '
  /<!-- faults: end -->/ { inside = 0 }
  !inside { print }
  /<!-- faults: begin/ {
    inside = 1
    print "| fault | calls that got the lock | median | worst | lost | most frequent error |"
    print "| --- | --- | --- | --- | --- | --- |"
    while (("sort " rows) | getline row) { sub(/^[0-9]+ /, "", row); print row }
  }
' faults.md >"$rows.md"
cat "$rows.md" >"$file"
