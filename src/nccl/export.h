// How a function of NCCL is defined: pncclName, and a weak ncclName that means the same. A profiler may define an
// ncclName of its own, which then calls pncclName; so nothing in here calls ncclName.
#pragma once

#define TUTTI_NCCL_EXPORT extern "C" __attribute__((visibility("default")))

#define TUTTI_NCCL_API(Returned, Name, ...)                                                       \
  TUTTI_NCCL_EXPORT Returned pnccl##Name(__VA_ARGS__);                                            \
  TUTTI_NCCL_EXPORT Returned nccl##Name(__VA_ARGS__) __attribute__((weak, alias("pnccl" #Name))); \
  Returned pnccl##Name(__VA_ARGS__)
