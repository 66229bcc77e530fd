#include "tests/ptx/machine/report.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

namespace tutti::ptx {
namespace {

std::string triple(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

// Collapses blanks, and shortens names.
std::string shorten(std::string_view text) {
  constexpr std::size_t kMaxText = 100;
  std::string result;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (!blank || (!result.empty() && result.back() != ' ')) result += blank ? ' ' : c;
  }
  return result.size() <= kMaxText ? result : result.substr(0, kMaxText) + "...";
}

const char* state_of(const Group& group) {
  switch (group.state) {
    case Group::State::ready: return "run";
    case Group::State::warp_wait: return "wait for threads of their warp";
    default: return "wait at a barrier";
  }
}

}  // namespace

std::string demangle(std::string_view name) {
  const std::string mangled(name);
  int status = 0;
  char* const plain = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string result = plain == nullptr ? mangled : plain;
  std::free(plain);
  return result;
}

std::string describe_kernel(const Code& code) { return demangle(code.info->name); }

void append_counters(const std::string& file, const Running& launch) {
  const LaunchCounters& counts = launch.counters;
  std::ofstream lines(file, std::ios::app);
  lines << describe_kernel(*launch.code) << '\t' << launch.launch.module->device();
  for (const std::uint64_t each :
       {counts.blocks, counts.warp_instructions, counts.polling_instructions, counts.barriers, counts.fences,
        counts.load_sectors, counts.store_sectors, counts.loaded_bytes, counts.stored_bytes})
    lines << '\t' << each;
  lines << '\n';
}

std::string describe_statement(const Source& source, const Statement& statement) {
  constexpr std::size_t kMaxPlaces = 4;
  const std::string text = "PTX line " + std::to_string(statement.line) + " `" + shorten(statement.text) + "`";
  std::string places;
  std::size_t count = 0;
  for (const Position& each : source.locations.path(statement.location)) {
    const auto file = source.files.find(each.file);
    if (each.line == 0 || file == source.files.end() || count == kMaxPlaces) break;
    const std::string& path = file->second;
    if (path.find("/include/") != std::string::npos) continue;  // A header of the toolkit.
    places += (count++ == 0 ? " (" : " < ") + path.substr(path.rfind('/') + 1) + ":" + std::to_string(each.line);
  }
  return places.empty() ? text : text + places + ")";
}

std::string describe_place(const Code& code, std::uint32_t pc) {
  return describe_statement(*code.source, *code.sites[pc].statement);
}

std::string describe_thread(const Block& block, std::uint32_t thread) {
  const Extent& threads = block.running->launch.block;
  return "thread " + triple(thread % threads.x, thread / threads.x % threads.y, thread / threads.x / threads.y) +
         " of block " + triple(block.index.x, block.index.y, block.index.z);
}

std::string describe_waits(const Block& block) {
  const Code& code = *block.running->code;
  struct Waiting {
    std::uint32_t threads = 0, first = 0;
    const Warp* warp = nullptr;
    const char* state = "";
  };
  std::map<std::uint32_t, Waiting> by_pc;  // Loops of one wait have the place of their last strong load.
  for (std::uint32_t w = 0; w < block.warps.size(); ++w) {
    const Warp& warp = block.warps[w];
    for (const Group& group : warp.groups) {
      const bool polls = group.state == Group::State::ready && warp.polled_address != 0;
      Waiting& waiting = by_pc[polls ? warp.polled_pc : group.pc];
      if (waiting.threads == 0)
        waiting = {0, w * 32 + static_cast<std::uint32_t>(__builtin_ctz(group.mask)), &warp, state_of(group)};
      waiting.threads += static_cast<std::uint32_t>(__builtin_popcount(group.mask));
    }
  }
  std::string text;
  for (const auto& [pc, waiting] : by_pc) {
    text += "\n  " + std::to_string(waiting.threads) + " threads, the first is " +
            describe_thread(block, waiting.first) + ", " + waiting.state + " at " + describe_place(code, pc);
    char word[80] = "";
    if (pc == waiting.warp->polled_pc && waiting.warp->polled_address != 0)
      std::snprintf(word, sizeof word, "; the word at 0x%llx is 0x%llx",
                    static_cast<unsigned long long>(waiting.warp->polled_address),
                    static_cast<unsigned long long>(waiting.warp->polled_value));
    text += word;
  }
  return text;
}

}  // namespace tutti::ptx
