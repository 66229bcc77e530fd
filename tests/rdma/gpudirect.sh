# Runs in a guest: ranks on GPU emulators over RDMA, with slots of lanes required to be in emulator memory. $1: folder of the
# tests. Excludes tests with six ranks, which need more memory than an emulator has.
set -euo pipefail
export TUTTI_TRANSPORT=verbs TUTTI_GPUDIRECT=on
ran=(bash "$(dirname "${BASH_SOURCE[0]}")/ran.sh")
"${ran[@]}" 1 "$1/device_remote_lanes_test" --gtest_brief=1 --gtest_filter='*/verbs'
"${ran[@]}" 1 "$1/device_network_ll_test" --gtest_brief=1 --gtest_filter='*OverRdma'
TUTTI_GPUDIRECT=auto "${ran[@]}" 1 "$1/device_listing_test" --gtest_brief=1
"${ran[@]}" 6 "$1/device_network_test" --gtest_brief=1 \
  --gtest_filter='*OrderWrites:*SplitsWithinAndAcrossHosts/host:*NamesMissingRank_OnAllHosts/host:*AbortEndsWaits_OnOtherHosts/host:*InNewCommunicators/host:*HierarchicalAlgorithms/host:-*ConnectsHosts*'
