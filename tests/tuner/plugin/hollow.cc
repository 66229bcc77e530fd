// A plugin without functions.
#include "src/tuner/plugin/abi.h"

extern "C" const tutti::nccl_tuner::PluginV5 ncclTunerPlugin_v5;
const tutti::nccl_tuner::PluginV5 ncclTunerPlugin_v5 = {"Hollow", nullptr, nullptr, nullptr};
