// Findings of `tutti doctor`, and their output as text and JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tutti::tool {

struct DoctorSection {
  std::string title;                                         // "transports"
  std::vector<std::pair<std::string, std::string>> lines{};  // Names and findings.
};

struct DoctorReport {
  std::vector<DoctorSection> sections{};
  std::vector<std::string> warnings{};
  std::string error{};  // Reason why no communicator can be created, or unusable files; empty: no error.
};

// Prints the report, with the settings of this process (src/base/config.h) between sections and warnings.
std::string doctor_text(const DoctorReport& report);
std::string doctor_json(const DoctorReport& report);

}  // namespace tutti::tool
