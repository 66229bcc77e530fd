// Files that settings name and without which communicators go on, for `tutti doctor`.
#pragma once

#include <string>
#include <vector>

#include "tools/tutti/doctor_report.h"

namespace tutti::tool {

// Files that cannot be read or written as needed, each with the reason, separated by "; "; empty: none. Adds a warning
// for files and settings that have no effect because of other settings.
std::string useless_files(std::vector<std::string>& warnings);

// Adds a section with the machines whose autotuning results TUTTI_TUNE_FILE has, if there is such a file.
void add_saved_results(DoctorReport& report);

}  // namespace tutti::tool
