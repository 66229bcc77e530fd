#include "tests/plan/mutants.h"

#include <algorithm>
#include <string_view>

namespace tutti::test {
namespace {

struct Draft {
  std::vector<Operand> sources, targets;
  Fold fold = Fold::partial;
  std::uint32_t round = 0;
};

std::vector<Draft> drafts_of(const Plan& plan) {
  std::vector<Draft> drafts;
  for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
    for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i) {
      const Step step = plan.steps[i];
      drafts.push_back(
          {{step.sources.begin(), step.sources.end()}, {step.targets.begin(), step.targets.end()}, step.fold, round});
    }
  }
  return drafts;
}

Plan plan_of(const Plan& original, std::vector<Draft> drafts) {
  Plan plan{.problem = original.problem, .shape = original.shape, .steps = Steps(original.steps.self()), .rounds = {0}};
  std::size_t next = 0;
  for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
    for (; next < drafts.size() && drafts[next].round == round; ++next) {
      Draft& draft = drafts[next];
      for (std::vector<Operand>* side : {&draft.sources, &draft.targets}) {
        for (Operand& operand : *side) operand.reserved = 1;
      }
      plan.steps.add(draft.sources, draft.targets, draft.fold);
    }
    plan.rounds.push_back(static_cast<std::uint32_t>(plan.steps.size()));
  }
  return plan;
}

bool has(const std::vector<Operand>& operands, Space space) {
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) { return operand.space == space; });
}

class Mutator {
 public:
  Mutator(std::vector<Draft>& drafts, Rank ranks, std::mt19937_64& random)
      : drafts_(drafts), ranks_(ranks), random_(random) {}

  bool apply(Mutation mutation) {
    if (drafts_.empty()) return false;
    const std::size_t index = draw(drafts_.size());
    Draft& draft = drafts_[index];
    switch (mutation) {
      case Mutation::drop_step: drafts_.erase(at(index)); return true;
      case Mutation::repeat_step: drafts_.insert(at(index), Draft(draft)); return true;
      case Mutation::swap_steps: return swap_with_next(index);
      case Mutation::receive_first: return receive_first(draft.round);
      case Mutation::change_unit: return change_unit(draft);
      case Mutation::change_peer: return change_peer(draft);
      case Mutation::change_tag: return change_tag(draft);
      case Mutation::copy_for_fold: return copy_for_fold(draft);
      case Mutation::fold_for_copy: return fold_for_copy(draft);
      case Mutation::swap_sources: return swap_sources(draft);
      case Mutation::drop_flag: return drop_flag(draft);
      case Mutation::flip_fold: return flip_fold(draft);
    }
    return false;
  }

 private:
  std::size_t draw(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }
  std::vector<Draft>::iterator at(std::size_t index) { return drafts_.begin() + static_cast<std::ptrdiff_t>(index); }

  template <typename Fits>
  Operand* draw_operand(Draft& draft, Fits fits) {
    std::vector<Operand*> fitting;
    for (std::vector<Operand>* side : {&draft.sources, &draft.targets}) {
      for (Operand& operand : *side) {
        if (fits(operand)) fitting.push_back(&operand);
      }
    }
    return fitting.empty() ? nullptr : fitting[draw(fitting.size())];
  }

  bool swap_with_next(std::size_t index) {
    if (index + 1 >= drafts_.size()) return false;
    std::swap(drafts_[index], drafts_[index + 1]);
    std::swap(drafts_[index].round, drafts_[index + 1].round);
    return true;
  }

  bool receive_first(std::uint32_t round) {
    const auto in_round = [&](const Draft& draft) { return draft.round == round; };
    const auto first = std::find_if(drafts_.begin(), drafts_.end(), in_round);
    const auto last = std::find_if_not(first, drafts_.end(), in_round);
    const auto receives = [](const Draft& draft) {
      return has(draft.sources, Space::lane) || has(draft.sources, Space::flag);
    };
    if (std::is_partitioned(first, last, receives)) return false;
    std::stable_partition(first, last, receives);
    return true;
  }

  bool change_unit(Draft& draft) {
    Operand* operand = draw_operand(draft, [](const Operand& candidate) { return candidate.is_memory(); });
    if (operand == nullptr) return false;
    operand->first += draw(2) == 0 || operand->first == 0 ? 1 : -1;
    return true;
  }

  bool change_peer(Draft& draft) {
    Operand* operand = draw_operand(draft, [](const Operand&) { return true; });
    operand->peer = static_cast<Rank>((operand->peer + 1 + draw(ranks_ - 1)) % ranks_);
    return true;
  }

  bool change_tag(Draft& draft) {
    Operand* operand = draw_operand(draft, [](const Operand& candidate) { return !candidate.is_memory(); });
    if (operand == nullptr) return false;
    operand->tag ^= 1;
    return true;
  }

  bool copy_for_fold(Draft& draft) {
    const auto memory =
        std::find_if(draft.sources.begin(), draft.sources.end(), [](const Operand& o) { return o.is_memory(); });
    if (draft.sources.size() < 2 || memory == draft.sources.end()) return false;
    draft.sources.erase(memory);
    if (draft.sources.size() == 1) draft.fold = Fold::partial;
    return true;
  }

  bool fold_for_copy(Draft& draft) {
    const auto memory =
        std::find_if(draft.targets.begin(), draft.targets.end(), [](const Operand& o) { return o.is_memory(); });
    if (draft.sources.size() != 1 || memory == draft.targets.end()) return false;
    draft.sources.push_back(*memory);
    return true;
  }

  bool swap_sources(Draft& draft) {
    if (draft.sources.size() < 2) return false;
    const std::size_t first = draw(draft.sources.size() - 1);
    std::swap(draft.sources[first], draft.sources[first + 1]);
    return true;
  }

  bool drop_flag(Draft& draft) {
    const Operand* operand =
        draw_operand(draft, [](const Operand& candidate) { return candidate.space == Space::flag; });
    if (operand == nullptr) return false;
    for (std::vector<Operand>* side : {&draft.sources, &draft.targets}) {
      std::erase_if(*side, [&](const Operand& candidate) { return &candidate == operand; });
    }
    return true;
  }

  static bool flip_fold(Draft& draft) {
    draft.fold = draft.fold == Fold::partial ? Fold::complete : Fold::partial;
    return draft.sources.size() > 1 && draft.sources[0].space != Space::flag;
  }

  std::vector<Draft>& drafts_;
  const Rank ranks_;
  std::mt19937_64& random_;
};

// Words of possible errors, by kind of defect.
constexpr std::string_view kLength[] = {"length", "lies outside", "different units", "differs from rank", "overlaps"};
constexpr std::string_view kTraffic[] = {"blocked", "never received", "never awaited"};
constexpr std::string_view kContent[] = {"missing",          "doubled",         "another unit",
                                         "another chunk",    "other bits",      "complete",
                                         "unwritten",        "overwritten",     "writes a unit twice",
                                         "another position", "without targets", "writes the caller's input"};
constexpr std::string_view kOrder[] = {"race"};

template <std::size_t count>
bool mentions(const std::string& violation, const std::string_view (&words)[count]) {
  return std::any_of(words, words + count,
                     [&](std::string_view word) { return violation.find(word) != std::string::npos; });
}

}  // namespace

const char* name(Mutation mutation) {
  constexpr const char* names[kMutations] = {"drop_step",     "repeat_step",  "swap_steps", "receive_first",
                                             "change_unit",   "change_peer",  "change_tag", "copy_for_fold",
                                             "fold_for_copy", "swap_sources", "drop_flag",  "flip_fold"};
  return names[static_cast<std::uint32_t>(mutation)];
}

std::optional<std::vector<Plan>> mutant(const std::vector<Plan>& plans, Mutation mutation, std::mt19937_64& random) {
  const auto ranks = static_cast<Rank>(plans.size());
  const Rank chosen = std::uniform_int_distribution<Rank>(0, ranks - 1)(random);
  const auto seed = random();
  std::vector<Plan> changed = plans;
  for (Rank rank = 0; rank < ranks; ++rank) {
    // On one rank, receive_first does no harm; on all ranks it does.
    if (rank != chosen && mutation != Mutation::receive_first) continue;
    std::mt19937_64 same_for_all(seed);
    std::vector<Draft> drafts = drafts_of(plans[rank]);
    if (!Mutator(drafts, ranks, same_for_all).apply(mutation)) return {};
    changed[rank] = plan_of(plans[rank], std::move(drafts));
  }
  return changed;
}

bool explains(Mutation mutation, const std::string& violation) {
  const bool length = mentions(violation, kLength);
  const bool traffic = mentions(violation, kTraffic);
  const bool content = mentions(violation, kContent);
  const bool order = mentions(violation, kOrder);
  switch (mutation) {
    case Mutation::drop_step:
    case Mutation::repeat_step:
    case Mutation::swap_steps:  // Swaps messages, with their lengths and contents.
    case Mutation::change_peer: return length || traffic || content || order;
    case Mutation::receive_first: return traffic || content || order;
    case Mutation::change_unit: return length || content || order;
    case Mutation::change_tag:
    case Mutation::drop_flag: return traffic;
    case Mutation::copy_for_fold:
    case Mutation::fold_for_copy:
    case Mutation::swap_sources: return content;
    case Mutation::flip_fold: return violation.find("complete") != std::string::npos;
  }
  return false;
}

}  // namespace tutti::test
