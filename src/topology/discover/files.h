// Readers for the small files of sysfs and procfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// Returns the first line without its line end, or nothing if the file cannot be read.
std::optional<std::string> first_line(const std::string& path);
std::optional<std::int64_t> number_in(const std::string& path);  // Decimal, or hexadecimal after 0x.
std::vector<std::string> entries(
    const std::string& folder);  // File names, sorted with numbers by value. Empty if the folder does not exist.
std::string resolved(const std::string& path);  // Without symbolic links. Empty if the path does not exist.

}  // namespace tutti
