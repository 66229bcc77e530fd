// Description of a command of the tool. The parser (command_line.h) and the help text (help.h) both use it, so that
// help covers all options.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tutti::tool {

struct OptionRow {
  const char* name;          // "ranks", written --ranks.
  int key;                   // Identifies the option to the command; unique within it.
  const char* argument;      // Placeholder of the value in the help: "N". Null: the option takes no value.
  std::string default_text;  // Default of an option with a value, in words, or kRequired.
  std::string help;          // Meaning, unit and allowed values, in full sentences.
  bool may_repeat = false;
};
inline constexpr const char* kRequired = "required";

struct Command {
  const char* name;
  const char* summary;      // Line of `tutti --help`.
  const char* usage;        // Follows "tutti NAME".
  const char* description;  // Output of the command, in full sentences.
  std::vector<OptionRow> options;
  std::vector<const char*> examples;  // Full command lines.
  const char* environment;            // Variables that it honours, in a sentence.
  std::string appendix;               // Lists of names, or empty.
};

// Descriptions of all commands, in the order of the help.
std::span<const Command> commands();

// Returns the command with that name, or null.
const Command* find_command(std::string_view name);

// Descriptions of single commands. Keys of their options: options.h.
Command describe_plan();
Command describe_verify();
Command describe_explain();
Command describe_estimate();
Command describe_topo();
Command describe_simulate();
Command describe_doctor();

}  // namespace tutti::tool
