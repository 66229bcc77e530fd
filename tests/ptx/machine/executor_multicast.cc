// Multimem instructions: one access per device that has bound memory. Sums begin with any device.
#include <algorithm>
#include <cstring>

#include "tests/ptx/machine/executor.h"
#include "tests/ptx/machine/half.h"

namespace tutti::ptx {
namespace {

using Words = std::array<std::uint64_t, 4>;

// Memory elements and the type in which they are added.
template <typename Memory, typename Sum>
struct Adder {
  static Sum read(Memory bits) {
    if constexpr (std::is_same_v<Memory, Sum>) return bits;
    else return widen(bits);
  }
  static Memory write(Sum sum) {
    if constexpr (std::is_same_v<Memory, Sum>) return sum;
    else return narrow<Memory>(sum);
  }

  // Adds the elements of all replicas of a thread.
  static Words add(const std::vector<Words>& replicas, unsigned bytes) {
    Words result{};
    for (unsigned at = 0; at < bytes; at += sizeof(Memory)) {
      Sum sum = 0;
      for (const Words& words : replicas) {
        Memory element;
        std::memcpy(&element, reinterpret_cast<const std::byte*>(words.data()) + at, sizeof element);
        sum = &words == &replicas.front() ? read(element) : sum + read(element);
      }
      const Memory element = write(sum);
      std::memcpy(reinterpret_cast<std::byte*>(result.data()) + at, &element, sizeof element);
    }
    return result;
  }
};

Words add(Multimem kind, const std::vector<Words>& replicas, unsigned bytes) {
  switch (kind) {
    case Multimem::sum_float64: return Adder<double, double>::add(replicas, bytes);
    case Multimem::sum_float16: return Adder<Float16Bits, float>::add(replicas, bytes);
    case Multimem::sum_bfloat16: return Adder<BFloat16Bits, float>::add(replicas, bytes);
    default: return Adder<float, float>::add(replicas, bytes);
  }
}

}  // namespace

void Executor::access_multicast(Access& access) {
  auto replicas = memory_.replicas(access);
  std::rotate(
      replicas.begin(),
      replicas.begin() + static_cast<std::ptrdiff_t>(random_.below(static_cast<std::uint32_t>(replicas.size()))),
      replicas.end());
  std::vector<std::vector<Words>> loaded(32);
  for (const auto& addresses : replicas) {
    Access one(access.block, access.warp, access.in);
    one.warp_index = access.warp_index;
    one.pc = access.pc;
    one.mask = access.mask;
    one.addresses = addresses;
    if (access.in.multimem == Multimem::store) {
      one.data = access.data;
      memory_.store(one);
      continue;
    }
    memory_.load(one);
    for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      loaded[lane].push_back(one.data[lane]);
    }
  }
  for (std::uint32_t left = access.mask; left != 0 && access.in.kind == Kind::load; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    access.data[lane] = add(access.in.multimem, loaded[lane], access.in.bytes * access.in.count);
  }
}

}  // namespace tutti::ptx
