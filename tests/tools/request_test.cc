#include "tools/tutti/request.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tools/tutti/host_shapes.h"

namespace tutti::test {
namespace {

Result<Request> parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tutti");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return parse_request(static_cast<int>(arguments.size()), pointers.data());
}

std::string complaint(std::vector<std::string> arguments) { return parse(std::move(arguments)).status().message(); }

TEST(Request, IsHelpWithoutACommand) { EXPECT_EQ(parse({}).value().command, ""); }

TEST(Request, IsHelpWhereItIsAskedFor) {
  for (const char* asked : {"help", "--help", "-h"}) EXPECT_EQ(parse({asked}).value().command, "");
  for (const char* command : {"plan", "verify", "doctor"}) {
    EXPECT_EQ(parse({command, "-h"}).value().command, "");
    EXPECT_EQ(parse({command, "--help"}).value().command, "");
  }
}

TEST(Request, ReadsBytes) {
  const std::pair<const char*, double> sizes[] = {
      {"8", 8}, {"64K", 65536}, {"1.5M", 1.5 * 1048576}, {"1T", 1099511627776}};
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_bytes(text).value(), bytes) << text;
  for (const char* text : {"", "K", "0", "-8", "8B", "nan", "inf", "1e3", "1000T"})
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
}

TEST(Request, IsForTheVersion) {
  for (const char* asked : {"version", "--version"}) EXPECT_EQ(parse({asked}).value().command, "version");
  EXPECT_NE(complaint({"--verion"}).find("'--verion' is no command"), std::string::npos);
}

TEST(Request, NamesAllThatIsMissingAtOnce) {
  EXPECT_EQ(complaint({"plan"}), "plan wants --collective, --algorithm, --ranks; see tutti help");
  EXPECT_EQ(complaint({"plan", "--ranks", "4"}), "plan wants --collective, --algorithm; see tutti help");
  EXPECT_EQ(complaint({"verify"}), "verify wants --all, --collective or --algorithm, --ranks; see tutti help");
}

TEST(Request, RefusesWhatVerifyWouldNotHeed) {
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--root", "0"}, {"--in-place"}, {"--rank", "1"}, {"--fused"}, {"--dot"}}) {
    std::vector<std::string> arguments = {"verify", "--all", "--ranks", "4"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    EXPECT_NE(complaint(arguments).find("verify does not take " + option[0]), std::string::npos) << option[0];
  }
  EXPECT_NE(complaint({"verify", "--all", "--algorithm", "ring", "--ranks", "4"}), "");
}

TEST(Request, RefusesMoreRanksThanMemoryHolds) {
  EXPECT_NE(complaint({"verify", "--all", "--ranks", "1025"}).find("at most 1024"), std::string::npos);
  const std::vector<std::string> plan = {"plan",  "--collective", "all_reduce", "--algorithm", "ring", "--ranks",
                                         "65536", "--rank",       "7"};
  EXPECT_EQ(complaint(plan), "");  // One rank's plan is small.
  std::vector<std::string> drawing = plan;
  drawing.push_back("--dot");
  EXPECT_NE(complaint(drawing).find("too large to be held at once"), std::string::npos);
}

TEST(Request, ReadsRangesOfRanks) {
  const Request request = parse({"verify", "--all", "--ranks", "1-3,8,16-17"}).value();
  EXPECT_EQ(request.ranks, (std::vector<Rank>{1, 2, 3, 8, 16, 17}));
}

TEST(Request, ReadsHowRanksLieOnHosts) {
  const Request request = parse({"verify", "--all", "--groups", "4+4+4/2+1,2x3,2x1x4"}).value();
  EXPECT_EQ(request.layouts, (std::vector<Groups>{{{4, 4, 4}, {2, 1}}, {{3, 3}}, {{4, 4}, {1, 1}}}));
  EXPECT_EQ(request.ranks, (std::vector<Rank>{12, 6, 8}));
}

TEST(Request, RefusesLayoutsThatAreNone) {
  EXPECT_NE(complaint({"verify", "--all", "--groups", "2x"}), "");
  EXPECT_NE(complaint({"verify", "--all", "--groups", "2x2,"}), "");
  EXPECT_EQ(complaint({"verify", "--all", "--ranks", "3-4", "--groups", "2x2"}),
            "--ranks has 3, but no layout of --groups has so many");
  EXPECT_EQ(complaint({"verify", "--all", "--groups", "4+4/3+9"}),
            "--groups have 2 hosts, but 12 of them in the next level");
  EXPECT_NE(complaint({"verify", "--all", "--groups", "2x3+1"}), "");
  EXPECT_NE(complaint({"verify", "--all", "--groups", "300x300"}).find("90000 ranks are too large"), std::string::npos);
  EXPECT_NE(complaint({"verify", "--all", "--groups", "2000x501"}).find("more than 1000000 ranks"), std::string::npos);
  EXPECT_NE(complaint({"verify", "--all", "--ranks", "5", "--groups", "2x2"}).find("a layout with 4 ranks together"),
            std::string::npos);
  EXPECT_NE(complaint({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--groups", "2x2,3+5"})
                .find("one layout"),
            std::string::npos);
}

TEST(Request, DescribesAProblem) {
  const Request request =
      parse({"plan", "--collective", "reduce", "--algorithm", "chain", "--ranks", "4", "--root", "2", "--in-place"})
          .value();
  const Problem expected = {.collective = Collective::reduce, .ranks = 4, .root = 2, .in_place = true, .groups = {}};
  EXPECT_EQ(problem_of(request, 4), expected);
}

TEST(Request, RefusesARootWhereThereIsNone) {
  EXPECT_EQ(complaint({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--ranks", "4", "--root", "2"}),
            "--root has no meaning for all_reduce: it has none");
}

TEST(Request, RefusesWhatItCannotRead) {
  EXPECT_EQ(complaint({"sing"}),
            "'sing' is no command; the commands are plan, verify, explain, topo, simulate, doctor, version, help");
  EXPECT_NE(complaint({"plan", "--collective", "sum"}).find("'sum' is no collective; there are all_reduce"),
            std::string::npos);
  EXPECT_NE(complaint({"verify", "--all", "--ranks", "4-2"}).find("'4-2' is no range"), std::string::npos);
  EXPECT_NE(complaint({"verify", "--all", "--ranks", "-1"}).find("'-1' is no number from 1"), std::string::npos);
  EXPECT_NE(complaint({"verify", "--all", "--ranks", "2,"}).find("nothing before or after a ','"), std::string::npos);
  EXPECT_NE(complaint({"verify", "--all", "--ranks", "0"}).find("'0' is no number from 1"), std::string::npos);
  EXPECT_NE(complaint({"verify", "--loud"}).find("reading --loud"), std::string::npos);
  EXPECT_EQ(complaint({"verify", "--all", "--ranks", "2", "more"}), "'more' is one argument too many");
}

TEST(Request, RefusesValuesThatAreEmpty) {
  EXPECT_EQ(complaint({"plan", "--collective", "all_reduce", "--algorithm", "", "--ranks", "4"}),
            "it wants a value, not ''; while reading --algorithm");
  EXPECT_NE(complaint({"verify", "--all", "--ranks="}).find("wants a value"), std::string::npos);
}

TEST(Request, RefusesOptionsThatAreGivenTwice) {
  EXPECT_EQ(complaint({"verify", "--all", "--ranks", "2", "--ranks", "4"}), "it is given twice; while reading --ranks");
  EXPECT_NE(complaint({"verify", "--all", "--ranks", "2", "--all"}).find("given twice"), std::string::npos);
}

TEST(Request, RefusesAPlanOfSeveralProblems) {
  EXPECT_EQ(complaint({"plan", "--collective", "all_reduce", "--ranks", "2"}),
            "plan wants --algorithm; see tutti help");
  EXPECT_EQ(complaint({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--ranks", "2-3"}),
            "plan wants one number of --ranks, or one layout of --groups");
  EXPECT_EQ(complaint({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--ranks", "2", "--rank", "2"}),
            "--rank 2: ranks count from 0 to 1");
}

TEST(HostShapes, AreOfAllRanksOnSeveralHosts) {
  for (Rank ranks = 1; ranks <= 70; ++ranks) {
    for (const Groups& shape : host_shapes(ranks)) {
      EXPECT_EQ(ranks_in(shape), ranks);
      EXPECT_GE(shape[0].size(), 2u);
      if (shape.size() < 2) continue;
      EXPECT_EQ(std::accumulate(shape[1].begin(), shape[1].end(), std::size_t{0}), shape[0].size());
    }
  }
}

TEST(HostShapes, AreEvenAndUneven) {
  EXPECT_EQ(host_shapes(1), std::vector<Groups>());
  EXPECT_EQ(host_shapes(2), (std::vector<Groups>{{{1, 1}}}));
  EXPECT_EQ(host_shapes(9), (std::vector<Groups>{{{5, 4}}, {{2, 2, 2, 2, 1}}, {{4, 4, 1}}, {{8, 1}}, {{3, 5, 1}}}));
  EXPECT_EQ(host_shapes(16).back(), (Groups{{4, 4, 4, 4}, {2, 2}}));
}

}  // namespace
}  // namespace tutti::test
