#include "tests/tuner/plugin/stand_in_functions.h"

namespace {

using namespace tutti::nccl_tuner;  // NOLINT(google-build-using-namespace)

std::int32_t init(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t hosts, Logger log,
                  NvlinkDomains* domains, Constants* constants) {
  log(3, 64, __FILE__, __LINE__, "%zu ranks of communicator %llu", ranks,
      static_cast<unsigned long long>(communicator));
  constants->max_nvls_tree_per_channel[3][2] = 1;  // The most recent one.
  return tutti::test::begin(ranks, hosts, *domains, context, communicator);
}

}  // namespace

extern "C" const PluginV5 ncclTunerPlugin_v5;
const PluginV5 ncclTunerPlugin_v5 = {"StandIn", init, tutti::test::advise, tutti::test::end};
// Plugins may export several versions; this one must not be used.
extern "C" const PluginV4 ncclTunerPlugin_v4;
const PluginV4 ncclTunerPlugin_v4 = {"StandIn", nullptr, nullptr, nullptr};
