// Quantities with units, as the command line and the text output write them.
#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"

namespace tutti::tool {

// Parses "25M" or "7B" into a whole number from 1 to 10^13. K, M, B and T are powers of 1000.
Result<double> parse_parameters(std::string_view text);
// Parses "10Gbit" into Gbit/s. The unit is Mbit, Gbit or Tbit, in upper or lower case, with or without "/s".
Result<double> parse_link_rate(std::string_view text);
// Parses "300ms" into microseconds, from 1 us to 10^6 s. The unit is us, ms or s.
Result<double> parse_duration(std::string_view text);
// Parses "50%" into 0.5.
Result<double> parse_percent(std::string_view text);

// Three significant digits and a unit: "120 ms", "150 MB".
std::string duration_text(double us);
std::string bytes_text(double bytes);

}  // namespace tutti::tool
