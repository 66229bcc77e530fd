// Decodes statements into drafts of instructions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tests/ptx/machine/draft.h"

namespace tutti::ptx {

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

inline constexpr Named<Atomic> kAtomics[] = {
    {"exch", Atomic::exchange}, {"cas", Atomic::compare},   {"add", Atomic::add},   {"min", Atomic::minimum},
    {"max", Atomic::maximum},   {"and", Atomic::bit_and},   {"or", Atomic::bit_or}, {"xor", Atomic::bit_xor},
    {"inc", Atomic::increment}, {"dec", Atomic::decrement},
};
inline constexpr Named<Space> kSpaces[] = {
    {"global", Space::global},          {"const", Space::global},         {"shared", Space::shared},
    {"shared::cta", Space::shared},     {"local", Space::local},          {"param", Space::parameter},
    {"param::entry", Space::parameter}, {"param::func", Space::parameter}};

template <typename T, std::size_t kCount>
std::optional<T> find_named(const Named<T> (&table)[kCount], std::string_view name) {
  for (const Named<T>& entry : table) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

struct OperandType {
  std::uint8_t bytes = 0;
  bool is_signed = false, is_float = false;
};

class Decoder {
 public:
  Decoder(const Source& source, const Function& function, const Addresses& addresses, std::vector<Draft>& drafts)
      : source_(source), function_(function), addresses_(addresses), drafts_(drafts) {}

  Status decode(std::uint32_t index);

 private:
  using Family = bool (Decoder::*)();
  static Family family_of(std::string_view name);

  // Decoders of families return false if they do not know the instruction.
  bool decode_compute();
  bool decode_compare();
  bool decode_move();
  bool decode_address();
  bool decode_access();
  bool decode_atomic();
  bool decode_multimem();
  bool decode_control();
  bool decode_call();
  bool decode_barrier();
  bool decode_vote();
  bool decode_shuffle();
  bool decode_reduce();
  bool decode_fence();
  bool decode_nothing();

  bool parse_qualifiers();
  bool set_source(std::size_t slot, const Operand& operand, Width width);
  bool set_result(std::size_t slot, const Operand& operand, Width width);
  bool set_loose(std::size_t slot, const Operand& operand, DraftSlot::Use use);
  bool set_address(const Operand& operand);
  std::optional<std::int64_t> offset_of(const Operand& operand, Space& space) const;
  std::uint32_t find_variable(std::string_view name) const;
  bool add_packing(const Operand& whole, const Operand& list, bool packs);
  bool add_run(std::string_view opcode);
  std::size_t operand_count() const { return statement_->operands.size(); }
  const Operand& operand(std::size_t i) const { return statement_->operands[i]; }
  static Width width_of(const OperandType& type) {
    return type.bytes <= 4 ? Width::bits32 : type.bytes == 8 ? Width::bits64 : Width::bits128;
  }

  const Source& source_;
  const Function& function_;
  const Addresses& addresses_;
  std::vector<Draft>& drafts_;
  const Statement* statement_ = nullptr;
  Draft draft_;
  std::vector<std::string_view> parts_;  // Parts of the opcode.
  OperandType type_;                     // The last qualifier.
};

}  // namespace tutti::ptx
