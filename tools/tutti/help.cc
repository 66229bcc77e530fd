#include "tools/tutti/help.h"

#include <algorithm>

namespace tutti::tool {
namespace {

constexpr std::size_t kUsageIndent = 14;
constexpr std::size_t kNameColumns = 12;    // Width of command names in the overview.
constexpr std::size_t kOptionColumns = 26;  // Width of options with their arguments.

std::string padded(std::string text, std::size_t columns) {
  text.resize(std::max(text.size() + 2, columns), ' ');
  return text;
}

std::string option_text(const OptionRow& row) {
  const std::string argument = row.argument == nullptr ? "" : std::string(" ") + row.argument;
  const std::string title = padded("  --" + std::string(row.name) + argument, kOptionColumns);
  std::string details = row.help;
  if (row.argument != nullptr)
    details += row.default_text == kRequired ? " (required)" : " (default: " + row.default_text + ")";
  if (row.may_repeat) details += " May be repeated.";
  return title + wrapped(details, kOptionColumns, title.size());
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t used) {
  std::string lines;
  std::size_t column = used;
  bool begins = true;
  while (!text.empty()) {
    if (text.front() == '\n') {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
      begins = true;
      text.remove_prefix(1);
      continue;
    }
    const std::size_t blanks = text.find_first_not_of(' ');
    if (blanks == std::string_view::npos) break;
    text.remove_prefix(blanks);
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    if (!begins && column + 1 + word.size() > kHelpColumns) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
      begins = true;
    }
    lines.append(begins ? "" : " ").append(word);
    column += word.size() + (begins ? 0 : 1);
    begins = false;
    text.remove_prefix(word.size());
  }
  return lines + "\n";
}

std::string overview() {
  std::string text =
      wrapped(
          "Tutti is a library of collective communication (all-reduce, broadcast and others) between processes and "
          "threads, on host memory and GPUs. This tool inspects its algorithms, machines and settings.",
          0, 0) +
      "\nUsage: tutti COMMAND [options]\n\nCommands:\n";
  for (const Command& command : commands())
    text +=
        padded("  " + std::string(command.name), kNameColumns) + wrapped(command.summary, kNameColumns, kNameColumns);
  text += padded("  version", kNameColumns) + "print the version (also --version)\n";
  text += padded("  help", kNameColumns) + "print this text, or the help of a command (tutti help plan)\n";
  return text + "\ntutti COMMAND --help explains the options of a command and shows examples.\n";
}

std::string help_of(const Command& command) {
  const std::string name = command.name;
  std::string text = "Usage: tutti " + name + " " + wrapped(command.usage, kUsageIndent, 14 + name.size()) + "\n" +
                     wrapped(command.description, 0, 0) + "\nOptions:\n";
  for (const OptionRow& row : command.options) text += option_text(row);
  text += padded("  -h, --help", kOptionColumns) + "Print this text.\n\nExamples:\n";
  for (const char* example : command.examples) text += "  " + std::string(example) + "\n";
  text += "\nEnvironment: " + wrapped(command.environment, 2, 13);
  return command.appendix.empty() ? text : text + "\n" + command.appendix;
}

}  // namespace tutti::tool
