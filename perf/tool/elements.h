// Element types and reductions by nccl-tests' names, and the bits of small integers in each type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace perf {

struct Element {
  const char* name;       // nccl-tests' name: "half"
  const char* long_name;  // Tutti's name: "float16"
  tutti_type type;
  std::uint32_t size;
  std::uint32_t exact;  // All integers from 0 to `exact` are exact in the type. Powers of two up to 64 are exact too.
};
const std::vector<Element>& all_elements();

// sum, prod, min, max, avg, band, bor, bxor, mulsum (a pre-multiplied sum whose scalar differs between ranks).
struct Operation {
  const char* name;
  tutti_reduction reduction;  // Unused for mulsum, which is created per communicator.
  bool is_mulsum;
};
const std::vector<Operation>& all_operations();

// True if the library defines the operation for the type.
bool supports(const Element& element, const Operation& operation, bool on_gpu);

// The first 8 bytes of an integer up to max(64, element.exact) that is exact in the type; all other bytes are 0.
std::uint64_t bits_of(const Element& element, std::uint32_t value);

}  // namespace perf
