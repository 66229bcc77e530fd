#include "tools/tutti/command_line.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "src/base/nearest_name.h"

namespace tutti::tool {
namespace {

// An option of the form "--name=value" or "--name".
struct Word {
  std::string_view name;
  std::optional<std::string> value;
};

Word split_word(std::string_view word) {
  word.remove_prefix(2);
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, equals), std::string(word.substr(equals + 1))};
}

Status unknown_option(const Command& command, std::string_view name) {
  std::vector<std::string_view> known;
  for (const OptionRow& row : command.options) known.emplace_back(row.name);
  const std::string nearest(nearest_name(name, known));
  return invalid_argument("tutti " + std::string(command.name) + " has no option --" + std::string(name) +
                          (nearest.empty() ? see_help(command) : ": did you mean --" + nearest + "?"));
}

// Returns an error such as "--ranks 0: must be from 1 to 65536". Omits the value if the message quotes it.
Status in_option(const Status& failure, const OptionRow& row, const std::string& value) {
  std::string message = failure.message();
  const std::string quoted = "'" + value + "'";
  if (message.starts_with(quoted + " ")) message.erase(0, quoted.size() + 1);
  const bool repeats = value.empty() || message.find(quoted) != std::string::npos;
  return {failure.code(), "--" + std::string(row.name) + (repeats ? "" : " " + value) + ": " + message};
}

}  // namespace

bool GivenOptions::has(int key) const { return std::find(keys_.begin(), keys_.end(), key) != keys_.end(); }

std::string see_help(const Command& command) { return "; see tutti " + std::string(command.name) + " --help"; }

Result<GivenOptions> parse_options(const Command& command, int argc, char** argv,
                                   const std::function<Status(int, const std::string&)>& apply) {
  GivenOptions given;
  for (int at = 1; at < argc; ++at) {
    const std::string_view text = argv[at];
    if (!text.starts_with("--") || text.size() == 2)
      return invalid_argument("unexpected argument '" + std::string(text) + "'" + see_help(command));
    auto [name, value] = split_word(text);
    const auto named = [&](const OptionRow& row) { return name == row.name; };
    const auto row = std::find_if(command.options.begin(), command.options.end(), named);
    if (row == command.options.end()) return unknown_option(command, name);
    const std::string title = "--" + std::string(name);
    if (row->argument == nullptr && value) return invalid_argument(title + " does not accept a value");
    if (row->argument != nullptr && !value) {
      if (++at == argc) return invalid_argument(title + " needs a value (" + row->argument + ")" + see_help(command));
      value = argv[at];
    }
    if (value && value->empty()) return invalid_argument(title + ": the value is empty");
    if (!row->may_repeat && given.has(row->key)) return invalid_argument(title + " is given twice");
    given.keys_.push_back(row->key);
    const Status applied = apply(row->key, value.value_or(""));
    if (!applied.ok()) return in_option(applied, *row, value.value_or(""));
  }
  return given;
}

}  // namespace tutti::tool
