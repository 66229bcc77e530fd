# Runs in a guest: a test program, of which a minimum number of tests must pass and none may be skipped. So a filter without
# matches fails, and so does a missing device. Arguments: the minimum, then the program and its arguments.
set -euo pipefail
least="$1" status=0
shift
"$@" --gtest_color=no >/run/ran 2>&1 || status=$?
cat /run/ran
[ $status -eq 0 ] || exit $status
passed="$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?\.$/\1/p' /run/ran)"
if [ "${passed:-0}" -lt "$least" ] || grep -q '^\[  SKIPPED \]' /run/ran; then
  echo "ran.sh: ${passed:-0} tests of $1 passed; at least $least must pass, and none may be skipped" >&2
  exit 1
fi
