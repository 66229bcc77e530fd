#include "tests/tuner/plugin/stand_in_functions.h"

namespace {

std::int32_t init(std::size_t ranks, std::size_t hosts, tutti::nccl_tuner::Logger log, void** context) {
  log(3, 64, __FILE__, __LINE__, "%zu ranks of %s", ranks, "version 4");
  return tutti::test::begin(ranks, hosts, {}, context);
}

}  // namespace

extern "C" const tutti::nccl_tuner::PluginV4 ncclTunerPlugin_v4;
const tutti::nccl_tuner::PluginV4 ncclTunerPlugin_v4 = {"StandIn", init, tutti::test::advise, tutti::test::end};
