#include "src/base/config.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "src/base/config_table.h"
#include "src/base/nccl_names.h"
#include "src/base/unknown_variables.h"

namespace tutti {
namespace {

void read_entry(const Environment& environment, const ConfigEntry& entry, ReadConfig& read) {
  const Variable& variable = entry.variable;
  Setting setting = {&variable, variable.default_text, "default"};
  for (const char* name : {variable.name, variable.alias}) {
    std::optional<std::string> text = name == nullptr ? std::nullopt : environment.get(name);
    if (!text) continue;
    if (name == variable.alias && entry.translate != nullptr) {
      text = entry.translate(*text, read.warnings);
      if (text->empty()) break;
    }
    const std::string error = std::string(name) + " is \"" + *text + "\", but must be " + entry.wanted;
    const bool accepted = entry.set(read.config, *text);
    setting.refused = !accepted && name == variable.name;
    if (accepted || setting.refused) {
      setting.value = *text;
      setting.source = name;
    }
    if (setting.refused) {
      read.config.refused.push_back(error);
    } else if (!accepted) {  // NCCL may accept the value.
      read.warnings.push_back(
          error + ": " + (*variable.default_text == '\0' ? "ignored" : std::string("using ") + variable.default_text));
    }
    break;
  }
  read.settings.push_back(std::move(setting));
}

const ReadConfig& of_process() {
  static const ReadConfig read = [] {
    ReadConfig made = read_config(environment());
    set_log_level(made.config.log);
    if (!made.config.log_file.empty() && !log_to_file(made.config.log_file)) {
      log(LogLevel::warn, "log file %s: %s; logging to standard error instead",
          expand_log_file(made.config.log_file).c_str(), std::strerror(errno));
    }
    for (const std::string& note : made.notes) log(LogLevel::info, "%s", note.c_str());
    for (const std::string& warning : made.warnings) log(LogLevel::warn, "%s", warning.c_str());
    return made;
  }();
  return read;
}

}  // namespace

Environment Environment::of_process() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::get(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::span<const Variable> variables() {
  static const auto list = [] {
    std::vector<Variable> made;
    for (const ConfigEntry& entry : config_entries()) made.push_back(entry.variable);
    return made;
  }();
  return list;
}

ReadConfig read_config(const Environment& environment) {
  ReadConfig read;
  for (const ConfigEntry& entry : config_entries()) read_entry(environment, entry, read);
  for (const Setting& setting : read.settings) {
    if (setting.source == "NCCL_ALGO") read.config.algorithm_is_from_nccl = true;
    if (setting.source == "NCCL_PROTO") read.config.protocol_is_from_nccl = true;
  }
  const auto scale = [&read](std::int64_t& milliseconds) {
    if (milliseconds == 0) return;  // No timeout. A finite one must not be scaled to 0, either.
    const double scaled = static_cast<double>(milliseconds) * read.config.timeout_scale;
    milliseconds = std::llround(std::clamp(scaled, 1.0, static_cast<double>(kMaxTimeoutMs)));
  };
  scale(read.config.timeout_ms);
  scale(read.config.init_timeout_ms);
  for (std::string& warning : unknown_variables(environment, variables())) read.warnings.push_back(std::move(warning));
  read.notes = notes_on_nccl_variables(environment, variables());
  return read;
}

const Config& config() { return of_process().config; }
const std::vector<Setting>& settings() { return of_process().settings; }

const Environment& environment() {
  static const Environment read = Environment::of_process();
  return read;
}

}  // namespace tutti
