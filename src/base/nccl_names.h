// What NCCL_ALGO and NCCL_PROTO mean here: NCCL's names for what we have under others.
#pragma once

#include <string>
#include <vector>

namespace tutti {

// The name of ours that a value of NCCL_ALGO or NCCL_PROTO stands for, "" where it has no effect. A list is of what may
// be taken, so that several names that NCCL knows force nothing. Why names, lists, exclusions (^tree) and functions
// (broadcast:ring) are not heeded is said in `warnings`, a sentence each.
std::string algorithm_of_nccl(const std::string& value, std::vector<std::string>& warnings);
std::string protocol_of_nccl(const std::string& value, std::vector<std::string>& warnings);

}  // namespace tutti
