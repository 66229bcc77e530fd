// Messages of NCCL plugins in our log.
#include "src/base/plugin_log.h"

#include <gtest/gtest.h>

#include <string>

#include "src/base/log.h"

namespace tutti::test {
namespace {

std::string lines;

void log_at(std::int32_t level, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  log_for_plugin("some plugin", level, format, arguments);
  va_end(arguments);
}

class PluginLog : public testing::Test {
 protected:
  PluginLog() {
    lines.clear();
    set_log_sink([](std::string_view line) { lines += line.substr(line.find("TUTTI")); });
    set_log_level(LogLevel::trace);
  }
  ~PluginLog() override {
    set_log_sink(nullptr);
    set_log_level(LogLevel::warn);
  }
};

TEST_F(PluginLog, TranslatesLevelsOfNccl) {
  for (const std::int32_t level : {-1, 0, 1, 2, 3, 4, 5, 6}) log_at(level, "level %d, %s", level, "text");
  EXPECT_EQ(lines,
            "TUTTI INFO some plugin: level 1, text\n"
            "TUTTI WARN some plugin: level 2, text\n"
            "TUTTI INFO some plugin: level 3, text\n"
            "TUTTI WARN some plugin: level 4, text\n"
            "TUTTI TRACE some plugin: level 5, text\n"
            "TUTTI WARN some plugin: level 6, text\n");
}

TEST_F(PluginLog, DropsMessagesBelowOurLevel_AndCutsLongOnes) {
  set_log_level(LogLevel::warn);
  log_at(3, "%s", "text");
  log_at(2, nullptr);
  EXPECT_EQ(lines, "");
  log_at(2, "%s", std::string(5000, 'x').c_str());
  EXPECT_TRUE(lines.ends_with("xxx\n"));
  EXPECT_LT(lines.size(), 1000U);
}

}  // namespace
}  // namespace tutti::test
