#!/usr/bin/env bash
# Runs `handrail verify` and keeps its reports in reports/. BASE is the commit to compare with, if there is one.
# Exits with 0 where the change broke nothing, 1 where it did, 5 where that is not known.
set -u
mkdir -p reports
words=(verify --sarif reports/verify.sarif --junit reports/verify.xml)
if [ -n "${BASE:-}" ]; then words+=(--base "$BASE"); fi
"${HANDRAIL:-handrail}" "${words[@]}" | tee reports/verify.txt
status=${PIPESTATUS[0]}
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  { echo '```'; cat reports/verify.txt; echo '```'; } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
