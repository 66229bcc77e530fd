// Files that settings name and that communicators go on without, for `tutti doctor`.
#pragma once

#include <string>

namespace tutti::tool {

// Which of them cannot be read or written as they would be, each with the reason and divided by "; "; empty: none.
// Prints a warning of those, and of settings beside them, that have no effect as long as others are as they are.
std::string useless_files();

// Prints which machines TUTTI_TUNE_FILE has choices of; nothing where there is no such file.
void print_kept_choices();

}  // namespace tutti::tool
