#include "tests/ptx/machine/words.h"

#include <bit>

namespace tutti::ptx {
namespace {

template <typename T>
std::uint64_t extreme(const Instruction& in, std::uint64_t old, std::uint64_t operand) {
  const T a = static_cast<T>(old), b = static_cast<T>(operand);
  const bool takes_operand = static_cast<Atomic>(in.action) == Atomic::minimum ? b < a : b > a;
  return takes_operand ? operand : old;
}

std::uint64_t sum(const Instruction& in, std::uint64_t old, std::uint64_t operand) {
  if (!in.is_float) return old + operand;
  if (in.bytes == 8) return std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(operand));
  const float added =
      std::bit_cast<float>(static_cast<std::uint32_t>(old)) + std::bit_cast<float>(static_cast<std::uint32_t>(operand));
  return std::bit_cast<std::uint32_t>(added);
}

}  // namespace

std::uint64_t result_of(const Instruction& in, std::uint64_t old, std::uint64_t operand, std::uint64_t other) {
  std::uint64_t result = 0;
  switch (static_cast<Atomic>(in.action)) {
    case Atomic::exchange: result = operand; break;
    case Atomic::compare: result = old == operand ? other : old; break;
    case Atomic::add: result = sum(in, old, operand); break;
    case Atomic::bit_and: result = old & operand; break;
    case Atomic::bit_or: result = old | operand; break;
    case Atomic::bit_xor: result = old ^ operand; break;
    case Atomic::increment: result = old >= operand ? 0 : old + 1; break;
    case Atomic::decrement: result = old == 0 || old > operand ? operand : old - 1; break;
    case Atomic::minimum:
    case Atomic::maximum:
      if (in.bytes == 4) {
        result = in.is_signed ? extreme<std::int32_t>(in, old, operand) : extreme<std::uint32_t>(in, old, operand);
      } else {
        result = in.is_signed ? extreme<std::int64_t>(in, old, operand) : extreme<std::uint64_t>(in, old, operand);
      }
      break;
  }
  return in.bytes >= 8 ? result : result & ((std::uint64_t{1} << (8 * in.bytes)) - 1);
}

template <typename T>
std::uint64_t change(const Instruction& in, std::uint64_t address, std::uint64_t operand, std::uint64_t other) {
  const std::atomic_ref<T> word(*reinterpret_cast<T*>(address));
  T old = word.load(std::memory_order_relaxed);
  for (;;) {
    const T next = static_cast<T>(result_of(in, old, operand, other));
    if (word.compare_exchange_weak(old, next, std::memory_order_acq_rel, std::memory_order_acquire)) return old;
  }
}

std::uint64_t change_word(const Instruction& in, std::uint64_t address, std::uint64_t operand, std::uint64_t other) {
  if (in.bytes == 2) return change<std::uint16_t>(in, address, operand, other);
  if (in.bytes == 4) return change<std::uint32_t>(in, address, operand, other);
  return change<std::uint64_t>(in, address, operand, other);
}

}  // namespace tutti::ptx
