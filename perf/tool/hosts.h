// Which hosts a run is on, as --hosts names them: "node1:2,user@node2:2,[fd00::3]:1", each with its number of
// processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perf {

struct Host {
  std::string name;  // For ssh: without the number, and without brackets.
  std::uint32_t processes = 1;
};

// Ends the program with a sentence if it is not such a list.
std::vector<Host> parse_hosts(const std::string& list);

// Part of one host, passed by the starting program to the program on that host: "2:4:8" is processes 2 to 5 of 8.
struct HostPart {
  std::uint32_t first = 0;
  std::uint32_t processes = 0;  // 0: there is no such part.
  std::uint32_t of = 0;
};
std::string text_of(const HostPart& part);
HostPart parse_part(const std::string& text);

}  // namespace perf
