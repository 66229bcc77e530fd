// Parser of command lines, by the table of options of a command.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/tutti/command.h"

namespace tutti::tool {

// Options that a command line contains.
class GivenOptions {
 public:
  bool has(int key) const;

 private:
  friend Result<GivenOptions> parse_options(const Command&, int, char**,
                                            const std::function<Status(int, const std::string&)>&);
  std::vector<int> keys_;
};

// Reads "--name value", "--name=value" and "--flag" from argv[1] on; argv[0] is the command's name. Calls `apply` with
// the key and the value ("" for a flag) of each option. Fails with invalid_argument on unknown options, missing or
// empty values, repeated options and other arguments. Returns errors of `apply` with the option prefixed.
Result<GivenOptions> parse_options(const Command& command, int argc, char** argv,
                                   const std::function<Status(int, const std::string&)>& apply);

// Returns a hint such as "; see tutti plan --help".
std::string see_help(const Command& command);

}  // namespace tutti::tool
