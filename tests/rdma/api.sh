# In a guest: tests of the API, over RDMA; $1: their folder. Left out, beside what TCP leaves out as well (tests/api), is a
# test that makes a hundred communicators: emulation takes its time to register their memory.
set -euo pipefail
export TUTTI_TRANSPORT=verbs
left_out='*IfACallCannotBeMade:*ThatASplitFailsOnAPeer:*LetGoOfMemory*:*FailsOnAllWhereItFailsOnOne:*LeaveSlowOnesBehind'
for test in collectives endings processes shrink; do
  "$1/api_${test}_test" --gtest_brief=1 --gtest_filter="-$left_out"
done
