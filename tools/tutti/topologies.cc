#include "tools/tutti/topologies.h"

#include <filesystem>
#include <fstream>

#include "src/topology/fill.h"
#include "src/topology/formats.h"
#include "src/topology/presets.h"

namespace tutti {
namespace {

// No more than any reader takes, whatever there is to read.
Result<std::string> read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) return invalid_argument(path + " is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error("open " + path);
  std::string text(kLongestTopology + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) return system_error("read " + path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<Topology> topology_of_file(const std::string& path) {
  const std::string text = TUTTI_TRY(read_file(path));
  return read_topology(text, path);
}

Result<Topology> named_topology(const std::string& name) {
  Result<Topology> found = preset(name);
  if (!found.ok() && std::filesystem::exists(name)) found = topology_of_file(name);
  else if (!found.ok()) return invalid_argument(std::move(found).status().message() + ", and no file of this name");
  Topology topology = TUTTI_TRY(std::move(found));
  fill_in(topology);
  return topology;
}

}  // namespace tutti
