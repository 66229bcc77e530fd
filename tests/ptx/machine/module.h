// PTX text, parsed: entries and variables. A Program is the text; a Module is a program loaded on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "tests/ptx/machine/memory.h"

namespace tutti::ptx {

struct KernelParameter {
  std::uint32_t offset = 0, bytes = 0, alignment = 1;
};

struct KernelInfo {
  std::string name;
  std::vector<KernelParameter> parameters;
  std::uint32_t parameter_bytes = 0;
  std::uint32_t registers = 0;     // Estimate of what ptxas would assign per thread; at most 255, and less by .maxntid.
  std::uint32_t shared_bytes = 0;  // Static shared memory.
  std::uint32_t local_bytes = 0;   // Per thread.
  std::uint32_t threads_per_block_max = 1024;  // By .maxntid, or 1024.
};

struct VariableInfo {
  std::string name;
  std::size_t bytes = 0;
  bool constant = false;
};

struct Code;    // Instructions of a kernel.
struct Source;  // The parsed text.

// Weakens a program, to measure what the machine finds. Mutants are numbered from 0, in the order of the text.
struct Mutation {
  std::string mutant;    // "<first kernel of the text>#<number>". Empty, or of another text: none.
  std::string executed;  // File that gets a line for each mutant, and one more when its instruction first executes.
};

// Immutable and thread-safe.
class Program {
 public:
  // `text`: from .version to NUL or the end; leading text is skipped. Blanks and newlines may be collapsed. Fails with
  // the line and text of the first instruction that the machine does not know. `name` is for messages.
  static Result<std::shared_ptr<const Program>> parse(std::string_view text, std::string name,
                                                      const Mutation& mutation = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::string& name() const;
  const std::string& target() const;  // "sm_90"
  const std::vector<KernelInfo>& kernels() const;
  const KernelInfo* find_kernel(std::string_view name) const;  // Null if there is none.
  const std::vector<VariableInfo>& variables() const;          // .global and .const

  const Source& source() const { return *source_; }    // For the machine.
  const Code* find_code(std::string_view name) const;  // For the machine.

 private:
  explicit Program(std::unique_ptr<Source> source);
  std::unique_ptr<Source> source_;
};

// Thread-safe. Launches keep their module.
class Module {
 public:
  // Allocates and initialises the program's variables, and registers them in `space`, which must live longer.
  static Result<std::shared_ptr<const Module>> load(std::shared_ptr<const Program> program, AddressSpace& space,
                                                    int device);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::shared_ptr<const Program>& program() const { return program_; }
  int device() const { return device_; }
  std::byte* find_variable(std::string_view name) const;                   // Null if there is none.
  const std::vector<std::byte*>& addresses() const { return addresses_; }  // As in Program::variables().

 private:
  Module(std::shared_ptr<const Program> program, AddressSpace& space, int device);
  std::shared_ptr<const Program> program_;
  AddressSpace& space_;
  int device_;
  std::vector<std::byte*> addresses_;
};

}  // namespace tutti::ptx
