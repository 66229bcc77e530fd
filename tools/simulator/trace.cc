#include "tools/simulator/trace.h"

#include <array>
#include <cstdio>
#include <set>

#include "src/base/json.h"

namespace tutti::simulator {
namespace {

constexpr std::uint32_t kRanks = 1, kLinks = 2;  // Process ids of the format.

std::string named(std::uint32_t process, std::uint32_t thread, const std::string& name) {
  return R"({"ph":"M","name":"thread_name","pid":)" + std::to_string(process) + R"(,"tid":)" + std::to_string(thread) +
         R"(,"args":{"name":)" + json_quoted(name) + "}},\n";
}

// Returns the name of a rank's channel. A rank has separate channels in each order of ranks.
std::string rank_name(std::uint32_t subject, Rank ranks, bool orders) {
  const std::string name = "rank " + std::to_string(subject % ranks);
  return orders ? name + ", order " + std::to_string(subject / ranks) : name;
}

std::string shown(const TraceEvent& event) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(),
                R"({"ph":"X","pid":%u,"tid":%u,"ts":%.4f,"dur":%.4f,"name":"%.0f bytes","args":{"chunk":%u}})",
                event.link ? kLinks : kRanks, event.subject, event.begin_us, event.end_us - event.begin_us, event.bytes,
                event.chunk);
  return text.data();
}

}  // namespace

std::string chrome_trace(const std::vector<TraceEvent>& events, const Network& network) {
  std::set<std::uint32_t> ranks, links;
  for (const TraceEvent& event : events) (event.link ? links : ranks).insert(event.subject);
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  text += R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"ranks"}},)"
          "\n"
          R"({"ph":"M","name":"process_name","pid":2,"args":{"name":"links"}},)"
          "\n";
  const bool orders = !ranks.empty() && *ranks.rbegin() >= network.ranks();
  for (const std::uint32_t rank : ranks) text += named(kRanks, rank, rank_name(rank, network.ranks(), orders));
  for (const std::uint32_t link : links) text += named(kLinks, link, network.name(link));
  for (std::size_t i = 0; i < events.size(); ++i) text += shown(events[i]) + (i + 1 < events.size() ? ",\n" : "\n");
  return text + "]}\n";
}

}  // namespace tutti::simulator
