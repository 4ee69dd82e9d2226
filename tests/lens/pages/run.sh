#!/usr/bin/env bash
# run.sh SOURCE FOLDER TEST: installs the packages that control the browser into FOLDER, once, and runs the test
# there. Exits with 77, and the reason, if there is no Chromium or no npm, or if npm reaches no registry.
set -euo pipefail
source=$1 folder=$2 test=$3
chromium=${KYMO_CHROMIUM:-/usr/bin/chromium}
[ -x "$chromium" ] || { echo "there is no Chromium at $chromium" >&2; exit 77; }
"$source/../../support/npm_install" "$source" "$folder"
cd "$folder"
exec node --test --test-reporter=tap "$test" # TAP prints the reason of a skipped test
