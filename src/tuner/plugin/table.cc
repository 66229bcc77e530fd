#include "src/tuner/plugin/table.h"

#include <algorithm>
#include <cmath>

#include "src/base/hash.h"

namespace tutti {
namespace {

using nccl_tuner::kColumns;
using nccl_tuner::kNotAvailable;
using nccl_tuner::kRows;
using nccl_tuner::Table;

constexpr std::size_t kTree = 0, kRing = 1, kPat = 6;
constexpr const char* kAlgorithmNames[kRows] = {"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                "NVLSTree", "PAT"};
constexpr const char* kProtocolNames[kColumns] = {"LL", "LL128", "Simple"};

// NCCL's broadcast and reduce along a ring are chains. NCCL's PAT is Bruck's algorithm with the distances in another
// order.
std::optional<std::size_t> row_of(Collective collective, std::string_view algorithm) {
  const bool rooted = collective == Collective::broadcast || collective == Collective::reduce;
  if (algorithm == (rooted ? "chain" : "ring")) return kRing;
  if (algorithm == (rooted ? "binary_tree" : "double_binary_tree")) return kTree;
  if (algorithm == "bruck") return kPat;
  return std::nullopt;
}

std::size_t column_of(Protocol protocol) {
  if (protocol == Protocol::simple) return 2;
  return protocol == Protocol::ll ? 0 : 1;
}

std::string name_of(std::size_t row, std::size_t column) {
  return std::string(kAlgorithmNames[row]) + "/" + kProtocolNames[column];
}

bool is_time(float entry) { return std::isfinite(entry) && entry >= 0; }

// Calls visit(row, column) for each entry of the table.
template <typename Visit>
void for_entries(Visit&& visit) {
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) visit(row, column);
  }
}

}  // namespace

std::optional<std::int32_t> number_of(Collective collective) {
  switch (collective) {
    case Collective::broadcast: return 0;
    case Collective::reduce: return 1;
    case Collective::all_gather: return 2;
    case Collective::reduce_scatter: return 3;
    case Collective::all_reduce: return 4;
    default: return std::nullopt;
  }
}

std::uint64_t bytes_of(const PluginCall& question) {
  const bool blocks =
      question.collective == Collective::all_gather || question.collective == Collective::reduce_scatter;
  return question.block_bytes * (blocks ? question.ranks : 1);
}

Projection project(Collective collective, std::span<const Candidate> candidates) {
  Projection made;
  for (auto& row : made.table) row.fill(kNotAvailable);
  for (auto& row : made.candidate) row.fill(-1);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Choice& choice = candidates[i].choice;
    const auto row = row_of(collective, choice.algorithm);
    if (!row) continue;
    const std::size_t column = column_of(choice.protocol);
    if (made.candidate[*row][column] >= 0) continue;
    made.candidate[*row][column] = static_cast<std::int32_t>(i);
    made.table[*row][column] = static_cast<float>(candidates[i].predicted_us);
    made.any = true;
  }
  return made;
}

std::uint32_t hash(const PluginChoice& advised, std::span<const Candidate> candidates) {
  if (advised.silent()) return 0;
  std::uint32_t made = 2166136261U ^ advised.channels;
  if (!advised.candidate) return made;
  const Choice& choice = candidates[*advised.candidate].choice;
  return hashed(hashed(made, choice.algorithm), name(choice.protocol));
}

Result<PluginChoice> judge(const Projection& before, const Table& after, std::int32_t channels) {
  bool changed = false;
  bool placed = false;  // Our own choice is in the table.
  std::string no_number;
  std::optional<std::size_t> fastest;
  float min_us = 0;
  for_entries([&](std::size_t row, std::size_t column) {
    const float entry = after[row][column];
    if (std::isnan(entry)) no_number = name_of(row, column);
    const std::int32_t candidate = before.candidate[row][column];
    if (candidate < 0) return;
    changed = changed || entry != before.table[row][column];
    placed = placed || candidate == 0;
    if (!is_time(entry)) return;
    const auto mine = static_cast<std::size_t>(candidate);
    if (fastest && (entry > min_us || (entry == min_us && mine > *fastest))) return;
    fastest = mine;
    min_us = entry;
  });
  if (!no_number.empty()) return invalid_argument("its time for " + no_number + " is not a number");
  if (!fastest) return invalid_argument("its times exclude all candidates");
  PluginChoice advised;
  if (changed) advised.candidate = fastest;
  if (channels > 0 && (changed || placed)) advised.channels = static_cast<std::uint32_t>(channels);
  return advised;
}

std::string preferred_unavailable(const Projection& before, const Table& after) {
  std::string wanted;
  for_entries([&](std::size_t row, std::size_t column) {
    if (before.candidate[row][column] < 0 && is_time(after[row][column])) wanted = name_of(row, column);
  });
  return wanted;
}

}  // namespace tutti
