// Element types and reductions by the names of nccl-tests, and how small integers look in each type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace perf {

struct Element {
  const char* name;       // nccl-tests' name: "half"
  const char* long_name;  // Ours: "float16"
  tutti_type type;
  std::uint32_t size;
  std::uint32_t exact;  // All integers from 0 to this are exact in the type, and so are powers of two up to 64.
};
const std::vector<Element>& all_elements();

// sum, prod, min, max, avg, mulsum (a pre-multiplied sum whose scalar differs between ranks).
struct Operation {
  const char* name;
  tutti_reduction reduction;  // Meaningless for mulsum, which is made per communicator.
  bool is_mulsum;
};
const std::vector<Operation>& all_operations();

// The bits of an integer up to max(64, element.exact) that is exact in the type.
std::uint64_t bits_of(const Element& element, std::uint32_t value);

}  // namespace perf
