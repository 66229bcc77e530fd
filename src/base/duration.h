// Durations in messages to users.
#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// Rounds to the unit a reader expects: "200 ms", "1.5 s", "30 s", "10 min", "2 h 5 min", "3 d". Below 10 s it keeps
// one decimal; a negative duration counts as 0.
std::string describe_ms(std::int64_t milliseconds);

// Three significant digits, or all before the point: "0.123 us", "12.3 us", "1050 us".
std::string describe_us(double microseconds);

}  // namespace tutti
