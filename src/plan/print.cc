#include "src/plan/print.h"

#include <map>
#include <tuple>

namespace tutti {
namespace {

const char* name(Space space) {
  constexpr const char* names[] = {"input", "output", "scratch", "lane", "flag"};
  return names[static_cast<std::uint8_t>(space)];
}

std::string range(const Operand& operand) {
  if (operand.count == 0) return "[]";
  const bool contiguous = operand.run >= operand.count || operand.stride == operand.run;
  if (!contiguous) {  // [first..last of the first run, +stride..] (count)
    std::string runs = "[" + std::to_string(operand.first);
    if (operand.run > 1) runs += ".." + std::to_string(operand.first + operand.run - 1);
    return runs + ", +" + std::to_string(operand.stride) + "..] (" + std::to_string(operand.count) + ")";
  }
  if (operand.count == 1) return "[" + std::to_string(operand.first) + "]";
  return "[" + std::to_string(operand.first) + ".." + std::to_string(operand.first + operand.count - 1) + "]";
}

std::string join(std::span<const Operand> operands, const char* separator, Rank self) {
  std::string joined;
  for (const Operand& operand : operands) {
    if (!joined.empty()) joined += separator;
    joined += describe(operand, self);
  }
  return joined;
}

// Returns whether a stage begins with `round`, and sets `stage` to it.
bool begins_stage(const Shape& shape, std::uint32_t round, std::size_t& stage) {
  for (stage = 0; stage < shape.stages.size(); ++stage) {
    if (shape.stages[stage] == round) return true;
  }
  return false;
}

std::string node(Rank rank, std::size_t step) { return "r" + std::to_string(rank) + "s" + std::to_string(step); }

std::string declare_nodes(std::span<const Plan> plans) {
  std::string dot;
  for (const Plan& plan : plans) {
    const Rank self = plan.steps.self();
    std::string chain;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      dot += "  " + node(self, i) + " [group=g" + std::to_string(self) + ", label=\"" + std::to_string(self) + ": " +
             describe(plan.steps[i], self) + "\"];\n";
      chain += (i == 0 ? "  " : " -> ") + node(self, i);
    }
    if (plan.steps.size() > 1) dot += chain + " [style=dotted, arrowhead=none];\n";
  }
  return dot;
}

std::string rows(std::span<const Plan> plans) {
  std::string dot;
  for (std::uint32_t round = 0; round < plans[0].shape.rounds; ++round) {
    std::string row;
    for (const Plan& plan : plans) {  // The first step of each rank in this round is in the row.
      if (plan.rounds[round] < plan.rounds[round + 1]) row += " " + node(plan.steps.self(), plan.rounds[round]) + ";";
    }
    dot += "  { rank=same;" + row + " }  // Round " + std::to_string(round) + ".\n";
  }
  return dot;
}

// The i-th message that a lane's writer sends is the i-th that its reader receives.
std::string edges(std::span<const Plan> plans) {
  using Key = std::tuple<Space, Rank, Rank, std::uint16_t>;
  std::map<Key, std::vector<std::string>> sent;
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& operand : plan.steps[i].targets) {
        if (operand.is_memory()) continue;
        sent[{operand.space, plan.steps.self(), operand.peer, operand.tag}].push_back(node(plan.steps.self(), i));
      }
    }
  }
  std::map<Key, std::size_t> received;
  std::string dot;
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& operand : plan.steps[i].sources) {
        if (operand.is_memory()) continue;
        const Key key{operand.space, operand.peer, plan.steps.self(), operand.tag};
        const std::size_t number = received[key]++;
        if (number >= sent[key].size()) continue;  // An incorrect plan may be drawn too.
        dot += "  " + sent[key][number] + " -> " + node(plan.steps.self(), i) +
               (operand.space == Space::flag ? " [style=dashed];\n" : ";\n");
      }
    }
  }
  return dot;
}

}  // namespace

std::string describe(const Operand& operand, Rank self) {
  if (operand.is_memory()) {
    const std::string owner = operand.peer == kAllRanks    ? " of all ranks"
                              : operand.peer == kAllOfHost ? " of all ranks of the host"
                                                           : " of rank " + std::to_string(operand.peer);
    return name(operand.space) + range(operand) + (operand.peer == self ? "" : owner);
  }
  return name(operand.space) + (" " + std::to_string(operand.peer)) +
         (operand.tag == 0 ? "" : " tag " + std::to_string(operand.tag));
}

std::string describe(const Step& step, Rank self) {
  const bool complete = step.fold == Fold::complete;
  return join(step.sources, " + ", self) + " -> " + join(step.targets, ", ", self) + (complete ? " (complete)" : "");
}

std::string print(const Plan& plan) {
  const Rank self = plan.steps.self();
  std::string lines = "rank " + std::to_string(self) + ": " + describe(plan.problem) + "; " +
                      std::to_string(plan.shape.units) + " units per block, " + std::to_string(plan.shape.scratch) +
                      " of scratch\n";
  for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
    std::size_t stage = 0;
    if (begins_stage(plan.shape, round, stage)) lines += "  stage " + std::to_string(stage) + "\n";
    lines += "    round " + std::to_string(round) + "\n";
    for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i) {
      lines += "      " + describe(plan.steps[i], self) + "\n";
    }
  }
  return lines;
}

std::string graphviz(std::span<const Plan> plans) {
  return "digraph plan {\n  node [shape=box, fontname=monospace];\n" + declare_nodes(plans) + rows(plans) +
         edges(plans) + "}\n";
}

}  // namespace tutti
