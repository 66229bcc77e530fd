#include "tests/ptx/machine/module.h"

#include <cstdlib>
#include <cstring>

#include "tests/ptx/machine/code.h"

namespace tutti::ptx {

Source::Source() = default;
Source::~Source() = default;
Program::Program(std::unique_ptr<Source> source) : source_(std::move(source)) {}
Program::~Program() = default;

Result<std::shared_ptr<const Program>> Program::parse(std::string_view text, std::string name,
                                                      const Mutation& mutation) {
  const std::size_t begin = text.find(".version");
  if (begin == std::string_view::npos) return invalid_argument(name + " contains no PTX: it has no .version");
  text = text.substr(begin);
  auto source = std::make_unique<Source>();
  source->text = text.substr(0, text.find('\0'));
  source->name = std::move(name);
  TUTTI_CHECK_OK(parse_source(*source));
  TUTTI_CHECK_OK(mutate_source(*source, mutation));
  TUTTI_CHECK_OK(decode_source(*source));
  return std::shared_ptr<const Program>(new Program(std::move(source)));
}

const std::string& Program::name() const { return source_->name; }
const std::string& Program::target() const { return source_->target; }
const std::vector<KernelInfo>& Program::kernels() const { return source_->kernels; }
const std::vector<VariableInfo>& Program::variables() const { return source_->variable_infos; }

const KernelInfo* Program::find_kernel(std::string_view name) const {
  for (const KernelInfo& kernel : source_->kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

const Code* Program::find_code(std::string_view name) const {
  const KernelInfo* const kernel = find_kernel(name);
  return kernel == nullptr ? nullptr : source_->codes[static_cast<std::size_t>(kernel - source_->kernels.data())].get();
}

Module::Module(std::shared_ptr<const Program> program, AddressSpace& space, int device)
    : program_(std::move(program)), space_(space), device_(device) {}

Module::~Module() {
  for (std::byte* const address : addresses_) {
    (void)space_.remove(address);
    std::free(address);
  }
}

Result<std::shared_ptr<const Module>> Module::load(std::shared_ptr<const Program> program, AddressSpace& space,
                                                   int device) {
  const std::shared_ptr<Module> module(new Module(std::move(program), space, device));
  for (const Storage& each : module->program_->source().variables) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t bytes = (std::max<std::size_t>(each.bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes));
    if (memory == nullptr) return out_of_memory();
    std::memset(memory, 0, bytes);
    if (!each.initial.empty()) std::memcpy(memory, each.initial.data(), each.initial.size());
    MemoryRange range;
    range.begin = memory;
    range.bytes = std::max<std::size_t>(each.bytes, 1);
    range.device = device;
    range.devices = kAllDevices;
    range.name = "the variable " + std::string(each.name);
    module->addresses_.push_back(memory);
    TUTTI_CHECK_OK(space.add(range));
  }
  return std::shared_ptr<const Module>(module);
}

std::byte* Module::find_variable(std::string_view name) const {
  const std::vector<VariableInfo>& all = program_->variables();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return addresses_[i];
  }
  return nullptr;
}

}  // namespace tutti::ptx
