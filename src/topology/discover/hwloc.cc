// hwloc exports its topology as XML, and our XML reader parses it. No hwloc header or structure is needed.
#include <string>

#include "src/base/library.h"
#include "src/topology/discover/parts.h"
#include "src/topology/formats.h"

namespace tutti {
namespace {

// Functions of hwloc.h, version 2.
struct Hwloc {
  int (*init)(void**);
  void (*destroy)(void*);
  int (*set_io_types_filter)(void*, int);
  int (*load)(void*);
  int (*export_xmlbuffer)(void*, char**, int*, unsigned long);
  void (*free_xmlbuffer)(void*, char*);
};
constexpr int kKeepImportant = 3;

Result<std::string> export_xml(const Hwloc& hwloc, void* topology) {
  char* xml = nullptr;
  int length = 0;
  if (hwloc.set_io_types_filter(topology, kKeepImportant) != 0) return system_error("configure hwloc for devices");
  if (hwloc.load(topology) != 0) return system_error("load the topology of hwloc");
  if (hwloc.export_xmlbuffer(topology, &xml, &length, 0) != 0) return system_error("export the topology of hwloc");
  std::string text(xml, length > 0 ? static_cast<std::size_t>(length) - 1 : 0);  // hwloc counts the terminating zero.
  hwloc.free_xmlbuffer(topology, xml);
  return text;
}

}  // namespace

Result<Topology> query_hwloc(const std::string& library) {
  const Library opened = TUTTI_TRY(Library::open(library));
  Hwloc hwloc = {};
  const bool found = opened.find("hwloc_topology_init", hwloc.init) &&
                     opened.find("hwloc_topology_destroy", hwloc.destroy) &&
                     opened.find("hwloc_topology_set_io_types_filter", hwloc.set_io_types_filter) &&
                     opened.find("hwloc_topology_load", hwloc.load) &&
                     opened.find("hwloc_topology_export_xmlbuffer", hwloc.export_xmlbuffer) &&
                     opened.find("hwloc_free_xmlbuffer", hwloc.free_xmlbuffer);
  if (!found) return unsupported(library + " is not version 2 of hwloc");
  void* topology = nullptr;
  if (hwloc.init(&topology) != 0) return system_error("initialize hwloc");
  Result<std::string> xml = export_xml(hwloc, topology);
  hwloc.destroy(topology);
  if (!xml.ok()) return std::move(xml).status();
  return read_hwloc_xml(xml.value(), "hwloc");
}

}  // namespace tutti
