// What was asked of the tool: its command line, parsed and checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/base/types.h"
#include "src/plan/problem.h"

namespace tutti::tool {

// As in a Problem.
using Groups = std::vector<std::vector<Rank>>;

struct Request {
  std::string command;  // "plan", "verify", "doctor", "version"; empty: help.
  bool all = false;     // verify: all collectives and algorithms.
  std::optional<Collective> collective;
  std::string algorithm;
  std::vector<Rank> ranks;   // --ranks 1-64,100: each of these numbers of ranks. Not given: those of the layouts.
  std::optional<Rank> rank;  // plan: of this rank only.
  Rank root = 0;
  bool root_given = false;
  bool in_place = false;
  bool fused = false;           // plan: after neighbours were merged.
  bool dot = false;             // plan: as a drawing.
  std::vector<Groups> layouts;  // --groups 2x2,3+5 and, with racks of hosts, 2x2x2 or 4+4+4/2+1; plan has one at most.
};

// How many ranks lie so.
Rank ranks_in(const Groups& groups);

// The hosts of one or more layouts.
Result<std::vector<Groups>> parse_layouts(std::string_view text);
Result<std::uint32_t> parse_count(std::string_view text, std::uint32_t least, std::uint32_t most);
// "8", "64K", "1.5M": K, M, G and T are powers of 1024, as nccl-tests have them. Whole bytes, from 1 to 10^15.
Result<double> parse_bytes(std::string_view text);

// Above 0.
Result<double> parse_number(const std::string& text, double below);
// Of those that may travel in a compression format.
Result<DataType> parse_float_type(const std::string& text);

Result<Request> parse_request(int argc, char** argv);

// The problem that `request` describes, for one of its numbers of ranks.
Problem problem_of(const Request& request, Rank ranks);

}  // namespace tutti::tool
