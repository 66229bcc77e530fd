#include "tools/tutti/given.h"

#include <algorithm>

namespace tutti::tool {

Status GivenOptions::add(int option, const char* value) {
  if (option == ':' || option == '?') return {};
  if (value != nullptr && *value == '\0') return invalid_argument("it wants a value, not ''");
  if (has(option)) return invalid_argument("it is given twice");
  given_.push_back(option);
  return {};
}

bool GivenOptions::has(int option) const { return std::find(given_.begin(), given_.end(), option) != given_.end(); }

}  // namespace tutti::tool
