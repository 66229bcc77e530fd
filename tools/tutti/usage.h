// What there is to be asked for.
#pragma once

namespace tutti::tool {

// The commands with their options, and the names that these take, on standard output.
void print_usage();

}  // namespace tutti::tool
