#include "tools/tutti/doctor_report.h"

#include <algorithm>
#include <string_view>

#include "include/tutti/tutti.h"
#include "src/base/config.h"
#include "src/base/json.h"
#include "tools/tutti/help.h"

namespace tutti::tool {
namespace {

constexpr std::size_t kNameColumns = 27;
constexpr std::size_t kDescriptionIndent = 6;

std::string version() {
  return std::to_string(TUTTI_VERSION_MAJOR) + "." + std::to_string(TUTTI_VERSION_MINOR) + "." +
         std::to_string(TUTTI_VERSION_PATCH);
}

std::string padded(std::string text, std::size_t columns) {
  text.resize(std::max(text.size() + 1, columns), ' ');
  return text;
}

bool is_default(const Setting& setting) { return setting.source == "default"; }

std::string shown(const std::string& value) { return value.empty() ? "(unset)" : value; }

// "default; also NCCL_DEBUG", "from NCCL_DEBUG; default warn", "invalid; default 600000".
std::string origin(const Setting& setting) {
  const Variable& variable = *setting.variable;
  std::string text = "default";
  if (!is_default(setting)) {
    text = setting.refused ? "invalid" : setting.source == variable.name ? "set" : "from " + setting.source;
    text += "; default " + shown(variable.default_text);
  }
  if (variable.alias != nullptr && setting.source != variable.alias) text += std::string("; also ") + variable.alias;
  return text;
}

std::string settings_text() {
  std::string text;
  std::string_view group;
  for (const Setting& setting : settings()) {
    const Variable& variable = *setting.variable;
    if (group != variable.group) text += "settings: " + std::string(variable.group) + "\n";
    group = variable.group;
    text += "  " + std::string(variable.name) + " = " + shown(setting.value) + "  [" + origin(setting) + "]\n";
    text +=
        std::string(kDescriptionIndent, ' ') + wrapped(variable.description, kDescriptionIndent, kDescriptionIndent);
  }
  return text;
}

std::string settings_json() {
  std::string text;
  for (const Setting& setting : settings()) {
    const Variable& variable = *setting.variable;
    text += (text.empty() ? "\n  {\"name\": " : ",\n  {\"name\": ") + json_quoted(variable.name) +
            ", \"group\": " + json_quoted(variable.group) + ", \"value\": " + json_quoted(setting.value) +
            ", \"source\": " + json_quoted(setting.source) + ", \"default\": " + json_quoted(variable.default_text) +
            ", \"nccl_name\": " + (variable.alias == nullptr ? "null" : json_quoted(variable.alias)) +
            ", \"description\": " + json_quoted(variable.description) + "}";
  }
  return text;
}

}  // namespace

std::string doctor_text(const DoctorReport& report) {
  std::string text = "tutti " + version() + "\n";
  for (const DoctorSection& section : report.sections) {
    text += section.title + "\n";
    for (const auto& [name, finding] : section.lines) {
      const std::string line = padded("  " + name, kNameColumns);
      text += line + wrapped(finding, kNameColumns, line.size());
    }
  }
  text += settings_text();
  for (const std::string& warning : report.warnings) text += "warning: " + warning + "\n";
  return text;
}

std::string doctor_json(const DoctorReport& report) {
  std::string text = "{\"version\": " + json_quoted(version());
  for (const DoctorSection& section : report.sections) {
    text += ",\n" + json_quoted(section.title) + ": [";
    std::string separator;
    for (const auto& [name, finding] : section.lines) {
      text += separator + "\n  {\"name\": " + json_quoted(name) + ", \"finding\": " + json_quoted(finding) + "}";
      separator = ",";
    }
    text += "]";
  }
  text += ",\n\"settings\": [" + settings_json() + "],\n\"warnings\": [";
  std::string separator;
  std::vector<std::string> warnings = read_config(environment()).warnings;  // The text report leaves these to the log.
  warnings.insert(warnings.end(), report.warnings.begin(), report.warnings.end());
  for (const std::string& warning : warnings) {
    text += separator + json_quoted(warning);
    separator = ", ";
  }
  return text + "],\n\"error\": " + (report.error.empty() ? "null" : json_quoted(report.error)) + "}\n";
}

}  // namespace tutti::tool
