# In a guest: tests of the API, over RDMA; $1: the program. Left out, beside what TCP leaves out as well (tests/api), are one
# that makes a hundred communicators, since emulation takes its time to register their memory, and one that asks whether a
# stream is idle a moment before that has noted it: here the moment is long.
set -euo pipefail
export TUTTI_TRANSPORT=verbs
left_out='*WhenCallIsUnsupported:*WhenPeerRunsOutOfDescriptors:*UnmapsMemory*:*FailsOnAllRanks_WhenOneFails:*DoesNotWaitForSlowRanks:*WaitsForCallsInStreams'
for test in collectives lifecycle processes shrink; do
  "$1" --file="${test}_test.cc" --gtest_brief=1 --gtest_filter="-$left_out"
done
