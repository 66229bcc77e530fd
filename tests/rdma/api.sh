# Runs in a guest: tests of the API over RDMA. $1: the program. Excludes the tests that TCP excludes (tests/api), and two more.
# One creates a hundred communicators, whose memory emulation registers slowly. The other assumes that a stream notices its
# completion soon.
set -euo pipefail
export TUTTI_TRANSPORT=verbs
left_out='*WhenCallIsUnsupported:*WhenPeerRunsOutOfDescriptors:*UnmapsMemory*:*FailsOnAllRanks_WhenOneFails:*WhenOneThreadHasAllRanks:*DoesNotWaitForSlowRanks:*WaitsForCallsInStreams'
for test in collectives lifecycle processes shrink; do
  "$1" --file="${test}_test.cc" --gtest_brief=1 --gtest_filter="-$left_out"
done
