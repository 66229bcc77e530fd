// Runs one instruction for many operands.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/lab.h"

namespace tutti::ptx {

// Names of the type and the registers that hold a T.
template <typename T>
struct TypeText;
template <>
struct TypeText<std::uint16_t> {
  static constexpr const char* kType = "b16";
  static constexpr const char* kRegister = "%h";
};
template <>
struct TypeText<std::uint32_t> {
  static constexpr const char* kType = "b32";
  static constexpr const char* kRegister = "%r";
};
template <>
struct TypeText<std::uint64_t> {
  static constexpr const char* kType = "b64";
  static constexpr const char* kRegister = "%d";
};
template <>
struct TypeText<float> {
  static constexpr const char* kType = "f32";
  static constexpr const char* kRegister = "%f";
};
template <>
struct TypeText<double> {
  static constexpr const char* kType = "f64";
  static constexpr const char* kRegister = "%e";
};

// Register of operand `number`, from 1; kResult is that of the result.
constexpr std::size_t kResult = 10;
template <typename T>
std::string register_of(std::size_t number) {
  return TypeText<T>::kRegister + std::to_string(number);
}

// Text of an instruction that takes operands A and makes an R.
template <typename R, typename... A>
std::string instruction(const std::string& opcode) {
  std::string text = opcode + " " + register_of<R>(kResult);
  std::size_t number = 0;
  ((text += ", " + register_of<A>(++number)), ...);
  return text + ";";
}

// Runs the text in one thread for each element of the operands, which have the same size. Expects no fault.
template <typename R, typename... A>
std::vector<R> results_of(const std::string& text, const std::vector<A>&... operands) {
  constexpr std::uint32_t kBlock = 128;
  const std::size_t count = std::max({operands.size()...});
  const auto blocks = static_cast<std::uint32_t>((count + kBlock - 1) / kBlock);
  Lab lab;
  const auto copied = [&]<typename T>(const std::vector<T>& values) {
    T* const memory = lab.make<T>(blocks * kBlock);
    std::copy(values.begin(), values.end(), memory);
    return memory;
  };
  std::string parameters = ".param .u64 out";
  std::string body = "mov.u32 %r40, %ctaid.x;\nmov.u32 %r41, %tid.x;\nmad.lo.s32 %r40, %r40, 128, %r41;\n";
  std::size_t number = 0;
  const auto load = [&]<typename T>(const std::vector<T>&) {
    const std::string name = "in" + std::to_string(++number);
    parameters += ", .param .u64 " + name;
    body += "ld.param.u64 %d20, [" + name + "];\nmad.wide.u32 %d21, %r40, " + std::to_string(sizeof(T)) +
            ", %d20;\nld.global." + TypeText<T>::kType + " " + register_of<T>(number) + ", [%d21];\n";
  };
  (load(operands), ...);
  body += text + "\nld.param.u64 %d22, [out];\nmad.wide.u32 %d23, %r40, " + std::to_string(sizeof(R)) +
          ", %d22;\nst.global." + TypeText<R>::kType + " [%d23], " + register_of<R>(kResult) + ";";
  R* const results = lab.make<R>(blocks * kBlock);
  const auto fault =
      lab.run(kernel_text(parameters, body), {blocks, 1, 1}, {kBlock, 1, 1}, results, copied(operands)...);
  EXPECT_FALSE(fault) << text << ": " << fault->text;
  return fault ? std::vector<R>() : std::vector<R>(results, results + count);
}

}  // namespace tutti::ptx
