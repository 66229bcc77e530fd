// Checks of files that settings name, for `tutti doctor`. Communicators work without these files.
#pragma once

#include <string>
#include <vector>

#include "tools/tutti/doctor_report.h"

namespace tutti::tool {

// Returns the files that cannot be read or written as needed, each with the reason, separated by "; "; empty if there
// are none. Adds a warning for files and settings that have no effect because of other settings.
std::string useless_files(std::vector<std::string>& warnings);

// If TUTTI_TUNE_FILE exists, adds a section that lists the machines whose autotuning results it has.
void add_saved_results(DoctorReport& report);

}  // namespace tutti::tool
