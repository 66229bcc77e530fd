// In-place calls on a buffer.
#pragma once

#include <vector>

#include "src/communicator/call/call.h"

namespace tutti::test {

inline Call all_reduce(std::vector<float>& buffer) {
  Call call;
  call.count = buffer.size();
  call.input = reinterpret_cast<const std::byte*>(buffer.data());
  call.output = reinterpret_cast<std::byte*>(buffer.data());
  return call;
}

inline Call message(Kind kind, Rank peer, std::vector<int>& buffer) {
  Call call;
  call.kind = kind;
  call.type = DataType::int32;
  call.root = peer;
  call.count = buffer.size();
  call.input = reinterpret_cast<const std::byte*>(buffer.data());
  call.output = reinterpret_cast<std::byte*>(buffer.data());
  return call;
}

}  // namespace tutti::test
