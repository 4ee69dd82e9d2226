#!/usr/bin/env bash
# run.sh SOURCE FOLDER TEST: installs what drives the browser into FOLDER, once, and runs the test there. Exit 77,
# with the reason, where there is no Chromium or no npm, or it reaches no registry.
set -euo pipefail
source=$1 folder=$2 test=$3
chromium=${KYMO_CHROMIUM:-/usr/bin/chromium}
[ -x "$chromium" ] || { echo "there is no Chromium at $chromium" >&2; exit 77; }
command -v npm >/dev/null || { echo "there is no npm" >&2; exit 77; }
mkdir -p "$folder"
cp "$source"/*.js "$source"/package.json "$source"/package-lock.json "$folder"
cd "$folder"
if ! cmp -s package-lock.json installed; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log 2>&1 ||
    { tail -n 5 npm.log >&2; echo "npm installed nothing" >&2; exit 77; }
  cp package-lock.json installed
fi
exec node --test "$test"
