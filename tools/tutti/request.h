// Parser of the command lines of plan and verify, and parsers of values that other commands share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/base/types.h"
#include "src/plan/problem.h"
#include "tools/tutti/command.h"

namespace tutti::tool {

// Layout of ranks, as in a Problem.
using Groups = std::vector<std::vector<Rank>>;

struct Request {
  bool all = false;  // verify: all collectives and algorithms.
  std::optional<Collective> collective;
  std::string algorithm;
  std::vector<Rank> ranks;   // Numbers of ranks from --ranks 1-64,100, or from the layouts.
  std::optional<Rank> rank;  // plan: print this rank only.
  Rank root = 0;
  bool in_place = false;
  bool fused = false;           // plan: print the plan after fuse().
  bool dot = false;             // plan: print a graph.
  std::vector<Groups> layouts;  // --groups 2x2,3+5 and, with racks of hosts, 2x2x2 or 4+4+4/2+1; one at most for plan.
};

// Number of ranks in a layout.
Rank ranks_in(const Groups& groups);

// Parses layouts such as "2x2,3+5".
Result<std::vector<Groups>> parse_layouts(std::string_view text);
// Parses a whole number from `min_value` to `max_value`.
Result<std::uint32_t> parse_count(std::string_view text, std::uint32_t min_value, std::uint32_t max_value);
// Parses "8", "64K" or "1.5M" into whole bytes, from 1 to 10^15. K, M, G and T are powers of 1024, as in nccl-tests.
Result<double> parse_bytes(std::string_view text);
// Parses one size, or "8..16G": all sizes from 8 bytes to 16 GiB, each twice the one before.
Result<std::vector<double>> parse_sizes(std::string_view text);

// Parses a number greater than 0 and less than `below`.
Result<double> parse_number(const std::string& text, double below);
// Parses a type that can be compressed.
Result<DataType> parse_float_type(const std::string& text);

// `command`: plan or verify. argv[0] is the command's name.
Result<Request> parse_request(const Command& command, int argc, char** argv);

// Returns the problem that `request` describes for `ranks`, one of its numbers of ranks.
Problem problem_of(const Request& request, Rank ranks);

}  // namespace tutti::tool
