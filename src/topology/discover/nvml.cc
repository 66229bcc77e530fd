// Reads GPUs from NVML: driver index, model, compute capability, NVLinks and NVLink-C2C links to the processor. A
// failed query leaves the value unchanged and adds a note.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/topology/discover/nvml_functions.h"
#include "src/topology/discover/parts.h"
#include "src/topology/figures.h"

namespace tutti {
namespace {

constexpr unsigned kMaxNvLinks = 18;
constexpr unsigned kMaxC2cLinks = 64;  // Upper bound for the driver's link count.

std::string bus_id_of(const NvmlPci& pci) {
  return normal_bus_id(std::string_view(pci.bus_id, ::strnlen(pci.bus_id, sizeof pci.bus_id)));
}

// True for an unknown model: empty, or "10de:2330" (see model_of()). Names from our table are more precise than the
// driver's.
bool is_number(const std::string& model) { return model.empty() || (model.size() == 9 && model[4] == ':'); }

struct End {
  std::string bus_id;
  bool is_switch;
  bool operator<(const End& other) const { return bus_id < other.bus_id; }
};

struct Gpu {
  NodeId id;
  std::map<End, unsigned> ends;  // NVLinks per remote end.
};

class Driver {
 public:
  Driver(TopologyTree& tree, const NvmlFunctions& nvml) : tree_(tree), nvml_(nvml) {}

  Result<std::string> look() {
    unsigned count = 0;
    if (const int problem = nvml_.count(&count))
      return unsupported(std::string("counting GPUs failed: ") + nvml_.words(problem));
    unsigned c2c_links = 0;
    for (unsigned index = 0; index < count; ++index) {
      void* device = nullptr;
      const std::optional<NodeId> id = gpu_of(index, device);
      if (!id) continue;
      describe(*id, device);
      gpus_.push_back({*id, nvlinks_of(*id, device)});
      c2c_links += connect_c2c(*id, device);
    }
    set_aside_all_others();
    const std::size_t ends = connect_nvlinks();
    return (gpus_.size() < count ? std::to_string(gpus_.size()) + " of " : "") + std::to_string(count) + " GPUs, " +
           std::to_string(ends) + " ends of NVLinks" +
           (c2c_links > 0 ? ", " + std::to_string(c2c_links) + " links of NVLink-C2C" : "");
  }

 private:
  void note(const std::string& sentence, int problem) { tree_.note(sentence + ": " + nvml_.words(problem)); }
  Node& node(NodeId id) { return tree_.topology.nodes[id]; }

  // Returns the node of a GPU, or nothing if the driver reports the GPU as lost or inaccessible.
  std::optional<NodeId> gpu_of(unsigned index, void*& device) {
    const std::string name = "gpu" + std::to_string(index);
    NvmlPci pci = {};
    if (const int problem = nvml_.device(index, &device)) {
      note("the driver counts " + name + " but does not return its handle", problem);
      return std::nullopt;
    }
    if (const int problem = nvml_.pci(device, &pci)) {
      note("the driver does not report where " + name + " is", problem);
      return std::nullopt;
    }
    const std::string bus_id = bus_id_of(pci);
    if (!is_bus_id(bus_id)) {
      tree_.note("the driver does not report where " + name + " is: its bus id is invalid");
      return std::nullopt;
    }
    const NodeId id = gpu_on(bus_id);
    if (std::any_of(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.id == id; })) {
      tree_.note("the driver reports the bus id of " + node(id).name + " for " + name + ", too");
      return std::nullopt;
    }
    node(id).index = index;
    node(id).name = name;
    return id;
  }

  // Returns the GPU with this bus id. Adds it to the first NUMA domain if sysfs lacks it, as in some containers.
  NodeId gpu_on(const std::string& bus_id) {
    if (const NodeId* known = tree_.on_bus(0, bus_id)) return *known;
    Node gpu;
    gpu.kind = NodeKind::gpu;
    gpu.bus_id = bus_id;
    gpu.name = "gpu " + bus_id;
    const NodeId id = tree_.add(std::move(gpu));
    const NodeId domain = tree_.topology.all(NodeKind::numa).front();
    tree_.connect(domain, id, LinkKind::pci, pci_gbytes_per_s(8, 16), 16);
    return id;
  }

  void describe(NodeId id, void* device) {
    Node& gpu = node(id);
    char name[96] = {};
    int major = 0, minor = 0;
    if (is_number(gpu.model)) {
      if (const int problem = nvml_.name(device, name, sizeof name - 1)) {
        note("the driver does not report the name of " + gpu.name, problem);
      } else {
        gpu.model = name;
      }
    }
    if (const int problem = nvml_.capability(device, &major, &minor)) {
      note("the driver does not report the compute capability of " + gpu.name, problem);
    } else {
      gpu.sm = static_cast<std::uint32_t>(major * 10 + minor);
    }
  }

  std::map<End, unsigned> nvlinks_of(NodeId id, void* device) {
    std::map<End, unsigned> ends;
    int unreported = 0;  // First error.
    bool nowhere = false;
    for (unsigned link = 0; link < kMaxNvLinks; ++link) {
      unsigned active = 0, kind = kNvmlEndIsSwitch;
      NvmlPci pci = {};
      int problem = nvml_.link_active(device, link, &active);
      if (problem == kNvmlInvalidArgument || problem == kNvmlNotSupported) continue;  // No such link.
      if (problem == 0 && active == 0) continue;
      if (problem == 0) problem = nvml_.link_end(device, link, &pci);
      if (unreported == 0) unreported = problem;
      if (problem != 0) continue;
      const std::string bus_id = bus_id_of(pci);
      nowhere = nowhere || !is_bus_id(bus_id);
      if (!is_bus_id(bus_id)) continue;
      const bool reported = nvml_.link_end_kind != nullptr && nvml_.link_end_kind(device, link, &kind) == 0;
      ++ends[{bus_id, reported ? kind == kNvmlEndIsSwitch : false}];
    }
    if (unreported != 0) note("the driver does not report all NVLinks of " + node(id).name, unreported);
    if (nowhere)
      tree_.note("the driver does not report where all NVLinks of " + node(id).name + " lead: a bus id is invalid");
    return ends;
  }

  // Adds the NVLinks and returns the number of link ends.
  std::size_t connect_nvlinks() {
    const auto reported = [](const Gpu& gpu) { return !gpu.ends.empty(); };
    if (std::any_of(gpus_.begin(), gpus_.end(), reported))  // NVML supersedes NVLinks from other sources.
      std::erase_if(tree_.topology.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
    std::size_t connected = 0;
    std::set<std::pair<NodeId, NodeId>> done;
    for (const auto& [gpu, ends] : gpus_) {
      for (const auto& [end, width] : ends) {
        const NodeId* known = tree_.on_bus(0, end.bus_id);
        if (known == nullptr && !end.is_switch) continue;  // A GPU that is hidden from this process.
        const NodeId other = known != nullptr ? *known : tree_.nvswitch(0, end.bus_id);
        connected += width;
        done.emplace(gpu, other);
        if (done.contains({other, gpu})) continue;  // Both ends report the link; add it once.
        tree_.connect(gpu, other, LinkKind::nvlink, nvlink_gbytes_per_s(node(gpu).sm, width), width);
      }
    }
    return connected;
  }

  // Adds the C2C link and returns the number of active physical links. Drivers that report only the mode give no link
  // count; the result is then 1.
  unsigned connect_c2c(NodeId id, void* device) {
    NvmlC2cMode mode = {};
    const bool reported = nvml_.c2c_mode != nullptr && nvml_.c2c_mode(device, &mode) == 0;
    if (reported && mode.is_enabled == 0) return 0;
    const unsigned count = field(device, kNvmlC2cLinks).value_or(0);
    if (!reported && count == 0) return 0;
    unsigned active = count == 0 ? 1 : 0;
    bool has_rates = count > 0;
    double megabytes = 0;
    for (unsigned link = 0; link < std::min(count, kMaxC2cLinks); ++link) {
      if (field(device, kNvmlC2cLinkIsActive, link) != 1u) continue;
      const unsigned rate = field(device, kNvmlC2cLinkMegabytes, link).value_or(0);
      has_rates = has_rates && rate > 0;
      megabytes += rate;
      ++active;
    }
    if (active == 0) {
      tree_.note(node(id).name + " has NVLink-C2C, but no link is active");
      return 0;
    }
    const double published = c2c_gbytes_per_s(node(id).sm);
    if (!has_rates)
      tree_.note("the driver does not report the rate of NVLink-C2C of " + node(id).name + ": assumed to be " +
                 std::to_string(std::lround(published)) + " GB/s per direction");
    tree_.connect(domain_of(id), id, LinkKind::c2c, has_rates ? megabytes / 1000 : published, active);
    return active;
  }

  std::optional<unsigned> field(void* device, unsigned id, unsigned link = 0) const {
    NvmlField value = {};
    value.id = id;
    value.scope = link;
    value.result = kNvmlNotSupported;
    if (nvml_.fields == nullptr || nvml_.fields(device, 1, &value) != 0 || value.result != 0) return std::nullopt;
    return value.value;
  }

  NodeId domain_of(NodeId id) {
    while (node(id).kind != NodeKind::numa) id = tree_.link_above(id).a;
    return id;
  }

  // Renames GPUs that sysfs shows but the driver does not expose, as in a container. The driver numbers only its own.
  void set_aside_all_others() {
    for (const NodeId id : tree_.topology.all(NodeKind::gpu)) {
      if (std::any_of(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.id == id; })) continue;
      node(id).index = kUnnumbered;
      node(id).name = "gpu " + node(id).bus_id;
      tree_.note(node(id).name + " is not available to this process through its driver");
    }
  }

  TopologyTree& tree_;
  const NvmlFunctions& nvml_;
  std::vector<Gpu> gpus_;  // Exposed by the driver, in its order.
};

}  // namespace

Result<std::string> query_nvml(TopologyTree& tree, const std::string& library) {
  const Library opened = TUTTI_TRY(Library::open(library));
  const NvmlFunctions nvml = TUTTI_TRY(NvmlFunctions::of(opened, library));
  if (const int problem = nvml.init()) return unsupported(std::string("initialization failed: ") + nvml.words(problem));
  Result<std::string> found = Driver(tree, nvml).look();
  nvml.shutdown();
  return found;
}

}  // namespace tutti
