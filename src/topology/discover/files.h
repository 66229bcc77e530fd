// Small files of the system, as sysfs and procfs have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// The first line without its end; nothing if it cannot be read.
std::optional<std::string> first_line(const std::string& path);
std::optional<std::int64_t> number_in(const std::string& path);  // Decimal, or behind 0x hexadecimal.
std::vector<std::string> entries(
    const std::string& folder);                 // Names, sorted, numbers by their value; empty if there is none.
std::string resolved(const std::string& path);  // Without symbolic links; empty if it leads nowhere.

}  // namespace tutti
