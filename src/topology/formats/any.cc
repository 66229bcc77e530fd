#include "src/topology/formats.h"
#include "src/topology/formats/xml.h"

namespace tutti {

Result<Topology> read_topology(std::string_view text, const std::string& origin) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return invalid_argument(origin + ": the file is empty");
  if (text[first] == '{') return read_topology_json(text, origin);
  if (text[first] != '<')
    return invalid_argument(origin +
                            ": neither a JSON object nor XML; pass a file from `tutti topo --json`, NCCL or lstopo");
  const Xml xml = TUTTI_TRY(Xml::parse(text, origin));
  const std::string_view root = xml.root().name();
  if (root == "system") return read_nccl_xml(text, origin);
  if (root == "topology") return read_hwloc_xml(text, origin);
  return xml.error_at(xml.root(), "neither a topology of NCCL (<system>) nor of hwloc (<topology>)");
}

}  // namespace tutti
