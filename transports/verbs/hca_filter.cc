#include "transports/verbs/hca_filter.h"

#include <algorithm>
#include <charconv>

#include "src/base/split_at.h"

namespace tutti {

HcaFilter::HcaFilter(std::string_view list) {
  const auto take = [&list](char mark) {
    const bool there = list.starts_with(mark);
    if (there) list.remove_prefix(1);
    return there;
  };
  excludes_ = take('^');
  exact_ = take('=');
  for (const std::string_view word : split_at(list, ',')) {
    const std::size_t colon = word.find(':');
    Entry entry{std::string(word.substr(0, colon)), 0};
    if (colon != std::string_view::npos)
      (void)std::from_chars(word.data() + colon + 1, word.data() + word.size(), entry.port);
    if (!entry.device.empty()) entries_.push_back(std::move(entry));
  }
}

bool HcaFilter::lists(std::string_view device, std::uint32_t port) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool fits = exact_ ? device == entry.device : device.starts_with(entry.device);
    return fits && (entry.port == 0 || entry.port == port);
  });
}

bool HcaFilter::admits(std::string_view device, std::uint32_t port) const {
  return entries_.empty() || lists(device, port) != excludes_;
}

bool HcaFilter::names(std::string_view device, std::uint32_t port) const { return !excludes_ && lists(device, port); }

}  // namespace tutti
