#include "tools/tutti/options.h"

#include "src/base/protocol.h"
#include "src/compression/format.h"
#include "src/plan/problem.h"
#include "src/topology/figures.h"

namespace tutti::tool {
namespace {

std::string collective_names() {
  std::string names;
  for (std::uint32_t i = 0; i < kCollectives; ++i)
    names.append(i == 0 ? "" : ", ").append(name(static_cast<Collective>(i)));
  return names;
}

std::string format_names() {
  std::string names;
  for (std::uint32_t i = 0; i < kCompressionFormats; ++i)
    names.append(i == 0 ? "" : ", ").append(name(static_cast<CompressionFormat>(i)));
  return names;
}

}  // namespace

Status not_implemented() { return internal_error("the option is not implemented"); }

std::string protocol_names() {
  return std::string(name(Protocol::ll)) + " and " + name(Protocol::ll128) + " (GPUs only) for short messages, " +
         name(Protocol::simple) + " for long ones";
}

OptionRow collective_row(const std::string& default_text) {
  return {"collective", kCollective, "NAME", default_text, "Collective: " + collective_names() + "."};
}

OptionRow groups_row(const std::string& default_text, const std::string& number_of_layouts) {
  return {"groups", kGroups, "LAYOUT", default_text,
          "How ranks are placed on hosts: 2x4 is 2 hosts with 4 ranks each, 3+5 a host with 3 ranks and one with 5. "
          "With racks: 2x2x4 is 2 racks of 2 hosts with 4 ranks each, 4+4+4/2+1 is 3 hosts in racks of 2 and 1. " +
              number_of_layouts};
}

OptionRow gpu_row() {
  return {"gpu", kGpu, "MODEL", "from the topology",
          "Model of the GPUs, for a topology that does not name it: " + gpu_models() + "."};
}

OptionRow nvlink_domain_row() {
  return {"nvlink-domain", kNvlinkDomain, "N", "from the topology",
          "Number of consecutive hosts whose GPUs are in one NVLink domain, joined by NVSwitches."};
}

OptionRow compress_row() {
  return {"compress", kCompress, "FORMAT", name(CompressionFormat::none),
          "Compression of messages of floats: " + format_names() + ". " + name(CompressionFormat::none) +
              " is no compression. docs/reference/compression-formats.md lists their sizes and errors."};
}

OptionRow max_relative_error_row() {
  return {
      "max-relative-error", kMaxRelativeError, "X", "no bound",
      "Instead of --compress: choose the fastest compression whose expected relative error (RMS) is at most X, above 0 "
      "and below 1."};
}

OptionRow type_row() {
  return {"type", kType, "TYPE", "float32",
          "Element type of compressed messages: float32, float16 or bfloat16. Only with compression."};
}

}  // namespace tutti::tool
