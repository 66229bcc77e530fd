#include "src/nccl/call_config.h"

#include <strings.h>

#include <algorithm>
#include <string>

#include "src/base/nccl_settings.h"
#include "src/base/read_number.h"
#include "src/nccl/config_field.h"
#include "src/nccl/environment.h"
#include "tutti/nccl.h"

namespace tutti::nccl {
namespace {

constexpr const char* kInitializer = "NCCL_COLLCONFIG_INITIALIZER";

// All but forceAlgSelection may be undefined.
constexpr ConfigField<ncclCollConfig_t> kFields[] = {{"minCTAs", &ncclCollConfig_t::minCTAs, 1, kNoMaximum},
                                                     {"maxCTAs", &ncclCollConfig_t::maxCTAs, 1, kNoMaximum},
                                                     {"nvlsCTAs", &ncclCollConfig_t::nvlsCTAs, 1, kNoMaximum},
                                                     {"cgaClusterSize", &ncclCollConfig_t::cgaClusterSize, 0, 8},
                                                     {"forceAlgSelection", &ncclCollConfig_t::forceAlgSelection, 0, 1},
                                                     {"CTAPolicy", &ncclCollConfig_t::CTAPolicy, 0, 3}};
constexpr std::size_t kFirstSize = offsetof(ncclCollConfig_t, launchCompletionEvent);

Outcome check_fields(const ncclCollConfig_t& config) {
  for (const auto& field : kFields) {
    const int value = config.*field.member;
    const bool may_be_undefined = field.member != &ncclCollConfig_t::forceAlgSelection;
    if (!may_be_undefined || value != kUndefined) TUTTI_NCCL_CHECK(check_range(field, value, kInitializer));
  }
  TUTTI_NCCL_CHECK(check_channels({config.minCTAs, "config.minCTAs"}, {config.maxCTAs, "config.maxCTAs"}));
  if (config.launchCompletionEvent == nullptr) return {};
  return invalid_usage("config.launchCompletionEvent is not supported; pass NULL, and record an event after the call");
}

// ---- Options of vendors ----

constexpr int kMaxExtensions = 64;

Outcome read_bound(const char* text, double& bound) {
  const std::string value = text;
  if (read_number(value, bound) && bound > 0 && bound < 1) return {};
  return invalid_argument("the value of option TUTTI_NCCL_MAX_RELATIVE_ERROR is \"" + value +
                          "\"; pass a number above 0 and below 1, such as \"0.01\"");
}

Outcome read_extension(const ncclConfigExt_t& extension, CallOptions& options) {
  const int option = extension.key.optionId;
  const bool known = option >= TUTTI_NCCL_COMPRESSION && option <= TUTTI_NCCL_COMPRESSION_ROUNDING;
  if (!known) {
    return invalid_argument("config.ext has option " + std::to_string(option) +
                            " of Tutti, which this version does not know; tutti/nccl.h lists them");
  }
  if (extension.val.s == nullptr || *extension.val.s == '\0')
    return invalid_argument("config.ext has option " + std::to_string(option) + " of Tutti without a text in val.s");
  std::string& text = option == TUTTI_NCCL_COMPRESSION ? options.compression : options.rounding;
  const bool is_bound = option == TUTTI_NCCL_MAX_RELATIVE_ERROR;
  if (is_bound ? options.max_relative_error > 0 : !text.empty())
    return invalid_argument("config.ext has option " + std::to_string(option) + " of Tutti twice; pass it once");
  if (is_bound) return read_bound(extension.val.s, options.max_relative_error);
  text = extension.val.s;
  return {};
}

// Ignores options of other vendors.
Outcome read_extensions(const ncclConfigExt_t* list, CallOptions& options) {
  int count = 0;
  for (const ncclConfigExt_t* each = list; each != nullptr; each = each->next) {
    if (++count > kMaxExtensions)
      return invalid_argument("config.ext has more than " + std::to_string(kMaxExtensions) +
                              " entries, or is a circle; end the list with NULL");
    if (each->key.vendorId == TUTTI_NCCL_VENDOR_ID) TUTTI_NCCL_CHECK(read_extension(*each, options));
  }
  if (options.compression.empty() || options.max_relative_error == 0) return {};
  return invalid_argument(
      "config.ext has TUTTI_NCCL_COMPRESSION and TUTTI_NCCL_MAX_RELATIVE_ERROR; pass only one of them");
}

// ---- Algorithms ----

// NCCL's name of an algorithm, and ours for a collective.
struct Renamed {
  const char* theirs;
  Kind kind;
  const char* ours;
};
constexpr Renamed kAlgorithms[] = {{"ring", Kind::broadcast, "chain"},
                                   {"ring", Kind::reduce, "chain"},
                                   {"tree", Kind::all_reduce, "double_binary_tree"},
                                   {"pat", Kind::all_gather, "bruck"},
                                   {"pat", Kind::reduce_scatter, "bruck"}};

bool is_equal(const std::string& one, const char* other) { return ::strcasecmp(one.c_str(), other) == 0; }

// Returns our name for the first algorithm of the list that the collective has; "": there is none.
std::string first_known(const char* list, Kind kind, const char* known) {
  for (const std::string& name : words_of_list(list)) {
    for (const Renamed& each : kAlgorithms)
      if (each.kind == kind && is_equal(name, each.theirs)) return each.ours;
    for (const std::string& ours : words_of_list(known))
      if (is_equal(name, ours.c_str())) return ours;
  }
  return "";
}

Outcome select_algorithm(const ncclCollConfig_t& config, Kind kind, CallOptions& options) {
  if (config.algSelection == nullptr || *config.algSelection == '\0') return {};
  const char* known = nullptr;
  TUTTI_NCCL_CHECK(outcome_of(tutti_algorithms(name_of(kind), &known)));
  options.algorithm = first_known(config.algSelection, kind, known);
  if (!options.algorithm.empty() || config.forceAlgSelection == 0) return {};
  return invalid_usage("config.algSelection is \"" + std::string(config.algSelection) + "\", but " + name_of(kind) +
                       " has none of these algorithms; select from " + known +
                       ", or set config.forceAlgSelection to 0");
}

// As in NCCL, the environment overrides the policy.
int policy_of(const ncclCollConfig_t& config) {
  return config.CTAPolicy == kUndefined || cta_policy_of_environment() ? 0 : config.CTAPolicy;
}

// As in NCCL, policy zero does not apply where an algorithm is selected.
void choose_policy(const ncclCollConfig_t& config, Kind kind, CallOptions& options) {
  if ((policy_of(config) & kZeroCtas) == 0 || !options.algorithm.empty() || algorithm_is_set()) return;
  if (kind == Kind::all_gather || kind == Kind::all_to_all) options.algorithm = kZeroCtaAlgorithm;
}

Outcome find_handle(Call& call, tutti_comm base, const CallOptions& options) {
  Outcome found = call.communicator->handle_with(base, options, call.handle);
  if (found.failed()) found.why = "config: " + found.why;
  return found;
}

// A maximum below the communicator's minimum replaces that. A minimum replaces the bound of a policy.
Outcome bound_channels(const ncclCollConfig_t& config, const Settings& settings, CallOptions& options) {
  const tutti_tuning_options& all = settings.tuning;
  if (config.minCTAs != kUndefined) options.min_channels = static_cast<std::uint32_t>(config.minCTAs);
  const std::uint32_t min = options.min_channels == 0 ? all.min_channels : options.min_channels;
  if (config.maxCTAs == kUndefined) {
    const bool few = policy_of(config) == kFewCtas || all.max_channels != settings.max_ctas;
    const std::uint32_t max = std::max<std::uint32_t>(min, kMaxFewCtas);
    if (few) options.max_channels = settings.max_ctas == 0 ? max : std::min(max, settings.max_ctas);
    return {};
  }
  options.max_channels = static_cast<std::uint32_t>(config.maxCTAs);
  options.min_channels = std::min(min, options.max_channels);
  if (settings.max_ctas == 0 || options.max_channels <= settings.max_ctas) return {};
  return invalid_argument("config.maxCTAs is " + std::to_string(config.maxCTAs) +
                          ", more than maxCTAs of the communicator, " + std::to_string(settings.max_ctas));
}

}  // namespace

// A selection that is not forced is dropped if the call cannot use it. A prediction shows that without communication. A
// request of copy engines needs none, since calls that cannot use them run without.
Outcome configure(Call& call, const ncclCollConfig_t& given) {
  ncclCollConfig_t config = {};
  TUTTI_NCCL_CHECK(copy_known(given, kFirstSize, kInitializer, config));
  TUTTI_NCCL_CHECK(check_fields(config));
  CallOptions options;
  TUTTI_NCCL_CHECK(read_extensions(config.ext, options));
  TUTTI_NCCL_CHECK(select_algorithm(config, call.kind, options));
  choose_policy(config, call.kind, options);
  TUTTI_NCCL_CHECK(bound_channels(config, call.communicator->settings, options));
  const tutti_comm base = options.has_compression() ? call.communicator->comm() : handle_for(call);
  TUTTI_NCCL_CHECK(find_handle(call, base, options));
  if (options.algorithm.empty() || options.algorithm == kZeroCtaAlgorithm || config.forceAlgSelection == 1) return {};
  double time_us = 0;
  if (!simulate({call}, time_us).failed()) return {};
  options.algorithm.clear();
  return find_handle(call, base, options);
}

}  // namespace tutti::nccl
