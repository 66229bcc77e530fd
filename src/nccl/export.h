// Macro that defines a function of NCCL: pncclName, and ncclName as its weak alias. A profiler may define its own
// ncclName, which calls pncclName. Code of this library must therefore never call ncclName.
#pragma once

#define TUTTI_NCCL_EXPORT extern "C" __attribute__((visibility("default")))

#define TUTTI_NCCL_API(Returned, Name, ...)                                                       \
  TUTTI_NCCL_EXPORT Returned pnccl##Name(__VA_ARGS__);                                            \
  TUTTI_NCCL_EXPORT Returned nccl##Name(__VA_ARGS__) __attribute__((weak, alias("pnccl" #Name))); \
  Returned pnccl##Name(__VA_ARGS__)
