// main() of test programs. --file=<name>_test.cc runs only the tests of that source file: each file is a test of ctest,
// although a program holds several.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

bool matches_one(std::string_view patterns, const std::string& name) {
  while (!patterns.empty()) {
    const std::size_t end = patterns.find(':');
    if (fnmatch(std::string(patterns.substr(0, end)).c_str(), name.c_str(), 0) == 0) return true;
    patterns = end == std::string_view::npos ? std::string_view() : patterns.substr(end + 1);
  }
  return false;
}

// A filter of GoogleTest is <patterns>-<patterns>: tests to run, and among those tests to leave out.
bool matches(std::string_view filter, const std::string& name) {
  const std::size_t dash = filter.find('-');
  const std::string_view wanted = filter.substr(0, dash);
  const std::string_view unwanted = dash == std::string_view::npos ? std::string_view() : filter.substr(dash + 1);
  return (wanted.empty() || matches_one(wanted, name)) && !matches_one(unwanted, name);
}

// Narrows the filter to the tests of a file. Returns false if the program has no test of that file.
bool select_file(const std::string& file) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const std::string filter = GTEST_FLAG_GET(filter);
  std::string selected;
  bool found = false;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!std::string_view(test.file()).ends_with("/" + file)) continue;
      found = true;
      const std::string name = std::string(suite.name()) + "." + test.name();
      if (matches(filter, name)) selected += (selected.empty() ? "" : ":") + name;
    }
  }
  GTEST_FLAG_SET(filter, selected.empty() ? "-*" : selected);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view option = "--file=";
    if (!argument.starts_with(option)) continue;
    const std::string file(argument.substr(option.size()));
    if (!select_file(file)) {
      std::fprintf(stderr, "%s: the program has no tests of this file\n", argv[i]);
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}
