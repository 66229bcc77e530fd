#include "tools/tutti/help.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tools/tutti/command_line.h"

namespace tutti::tool {
namespace {

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

Result<GivenOptions> parse(const Command& command, std::vector<std::string> words, std::string* applied = nullptr) {
  words.insert(words.begin(), command.name);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return parse_options(command, static_cast<int>(pointers.size()), pointers.data(), [&](int, const std::string& value) {
    if (applied != nullptr) *applied += value + ";";
    return value == "bad" ? invalid_argument("must be good") : Status();
  });
}

std::string error(const Command& command, std::vector<std::string> words) {
  return parse(command, std::move(words)).status().message();
}

const Command kCommand = {.name = "plan",
                          .summary = "",
                          .usage = "",
                          .description = "",
                          .options = {{"ranks", 1, "N", "1", "Number."},
                                      {"dot", 2, nullptr, "", "Graph."},
                                      {"slow", 3, "LINK", "none", "Link.", true}},
                          .examples = {},
                          .environment = "",
                          .appendix = ""};

TEST(Help, ExplainsEveryOptionOfEveryCommand) {
  for (const Command& command : commands()) {
    const std::string text = help_of(command);
    for (const OptionRow& row : command.options) {
      const std::string name = std::string(command.name) + " --" + row.name;
      EXPECT_NE(text.find("\n  --" + std::string(row.name) + " "), std::string::npos) << name;
      EXPECT_GE(row.help.size(), 15U) << name;
      EXPECT_EQ(row.help.back(), '.') << name;
      EXPECT_EQ(row.argument != nullptr, !row.default_text.empty())
          << name << " needs a default exactly if it has a value";
    }
    EXPECT_GE(command.examples.size(), 2U) << command.name;
    EXPECT_NE(text.find("\nEnvironment: "), std::string::npos) << command.name;
  }
}

TEST(Help, HasOneKeyPerOption) {
  for (const Command& command : commands()) {
    std::set<int> keys;
    for (const OptionRow& row : command.options)
      EXPECT_TRUE(keys.insert(row.key).second) << command.name << " " << row.name;
  }
}

TEST(Help, FitsIntoItsColumns) {
  EXPECT_LE(longest_line(overview()), kHelpColumns);
  for (const Command& command : commands()) EXPECT_LE(longest_line(help_of(command)), kHelpColumns) << command.name;
}

TEST(Help, ShowsExamplesWithExistingOptions) {
  for (const Command& command : commands()) {
    for (const std::string example : command.examples) {
      std::istringstream words(example);
      for (std::string word; words >> word && word != "|";) {
        if (!word.starts_with("--")) continue;
        const auto named = [&](const OptionRow& row) { return word.substr(2) == row.name; };
        EXPECT_TRUE(std::any_of(command.options.begin(), command.options.end(), named)) << example;
      }
    }
  }
}

TEST(Help, ListsEveryCommandInOverview) {
  for (const Command& command : commands())
    EXPECT_NE(overview().find("\n  " + std::string(command.name) + " "), std::string::npos) << command.name;
}

TEST(Wrapped, BreaksBetweenWordsAtLastColumn) {
  const std::string word(49, 'x');
  EXPECT_EQ(wrapped(word + " " + word, 2, 1), word + " " + word + "\n");  // 100 columns.
  EXPECT_EQ(wrapped(word + " " + word, 2, 2), word + "\n  " + word + "\n");
  EXPECT_EQ(wrapped("a  b\nc", 2, 0), "a b\n  c\n");
}

TEST(CommandLine, ReadsValuesAndFlags) {
  std::string applied;
  const GivenOptions given =
      parse(kCommand, {"--ranks", "4", "--dot", "--slow=a=b", "--slow", "--x"}, &applied).value();
  EXPECT_EQ(applied, "4;;a=b;--x;");
  EXPECT_TRUE(given.has(1) && given.has(2) && given.has(3));
  EXPECT_FALSE(parse(kCommand, {"--dot"}).value().has(1));
}

TEST(CommandLine, NamesOptionAndValue_WhenValueIsWrong) {
  EXPECT_EQ(error(kCommand, {"--ranks", "bad"}), "--ranks bad: must be good");
}

TEST(CommandLine, SuggestsOption_WhenOneIsClose) {
  EXPECT_EQ(error(kCommand, {"--rank", "4"}), "tutti plan has no option --rank: did you mean --ranks?");
  EXPECT_EQ(error(kCommand, {"--loud"}), "tutti plan has no option --loud; see tutti plan --help");
}

TEST(CommandLine, RejectsIncompleteOptions) {
  EXPECT_EQ(error(kCommand, {"--ranks"}), "--ranks needs a value (N); see tutti plan --help");
  EXPECT_EQ(error(kCommand, {"--ranks="}), "--ranks: the value is empty");
  EXPECT_EQ(error(kCommand, {"--dot=1"}), "--dot does not accept a value");
}

TEST(CommandLine, RejectsRepeatedOptionsAndOtherWords) {
  EXPECT_EQ(error(kCommand, {"--ranks", "2", "--ranks", "2"}), "--ranks is given twice");
  EXPECT_EQ(error(kCommand, {"more"}), "unexpected argument 'more'; see tutti plan --help");
  EXPECT_EQ(error(kCommand, {"--"}), "unexpected argument '--'; see tutti plan --help");
}

}  // namespace
}  // namespace tutti::tool
