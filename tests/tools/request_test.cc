#include "tools/tutti/request.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tools/tutti/host_shapes.h"

namespace tutti::tool {
namespace {

Result<Request> parse(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  const Command command = arguments[0] == "plan" ? describe_plan() : describe_verify();
  return parse_request(command, static_cast<int>(pointers.size()), pointers.data());
}

std::string error(std::vector<std::string> arguments) { return parse(std::move(arguments)).status().message(); }

TEST(Request, ExplainsInvalidRangesOfSizes) {
  const auto reason = [](const char* text) { return parse_sizes(text).status().message(); };
  EXPECT_EQ(reason("0..8"),
            "each end must be a number of bytes from 1 to 1e15, such as 8, 64K, 1.5M or 1G, but one is 0");
  EXPECT_NE(reason("8..99999T").find("but one is 99999T"), std::string::npos);
  EXPECT_EQ(reason("4G..8"), "range must begin with the smaller size, such as 8..4G");
  EXPECT_EQ(reason("..8"), "range must have a size at each end, such as 8..16G");
  EXPECT_EQ(parse_sizes("3..12").value(), (std::vector<double>{3, 6, 12}));
}

TEST(Request, ParsesBytes) {
  const std::pair<const char*, double> sizes[] = {
      {"8", 8}, {"64K", 65536}, {"1.5M", 1.5 * 1048576}, {"1T", 1099511627776}};
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_bytes(text).value(), bytes) << text;
  for (const char* text : {"", "K", "0", "-8", "8B", "nan", "inf", "1e3", "1000T"})
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
}

TEST(Request, NamesAllMissingOptions) {
  EXPECT_EQ(error({"plan"}), "tutti plan needs --collective, --algorithm, --ranks or --groups; see tutti plan --help");
  EXPECT_EQ(error({"plan", "--ranks", "4"}), "tutti plan needs --collective, --algorithm; see tutti plan --help");
  EXPECT_EQ(
      error({"verify"}),
      "tutti verify needs one of --all, --collective and --algorithm, --ranks or --groups; see tutti verify --help");
}

TEST(Request, RejectsOptionsOfPlan_WhenCommandIsVerify) {
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--root", "0"}, {"--in-place"}, {"--rank", "1"}, {"--fused"}, {"--dot"}}) {
    std::vector<std::string> arguments = {"verify", "--all", "--ranks", "4"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    EXPECT_NE(error(arguments).find("tutti verify has no option " + option[0]), std::string::npos) << option[0];
  }
  EXPECT_EQ(error({"verify", "--all", "--algorithm", "ring", "--ranks", "4"}),
            "--all excludes --collective and --algorithm");
}

TEST(Request, RejectsMoreRanksThanMemoryHolds) {
  EXPECT_EQ(error({"verify", "--all", "--ranks", "1025"}), "--ranks 1025: must be from 1 to 1024");
  EXPECT_EQ(error({"verify", "--all", "--groups", "300x300"}), "90000 ranks are too many; the maximum is 1024");
  const std::vector<std::string> plan = {"plan",  "--collective", "all_reduce", "--algorithm", "ring", "--ranks",
                                         "65536", "--rank",       "7"};
  EXPECT_EQ(error(plan), "");  // One rank's plan is small.
  std::vector<std::string> drawing = plan;
  drawing.push_back("--dot");
  EXPECT_EQ(error(drawing),
            "65536 ranks are too many; the maximum is 1024, or 65536 with --rank and neither --fused nor --dot");
}

TEST(Request, ParsesRangesOfRanks) {
  const Request request = parse({"verify", "--all", "--ranks", "1-3,8,16-17"}).value();
  EXPECT_EQ(request.ranks, (std::vector<Rank>{1, 2, 3, 8, 16, 17}));
}

TEST(Request, ParsesLayoutsOfHosts) {
  const Request request = parse({"verify", "--all", "--groups", "4+4+4/2+1,2x3,2x1x4"}).value();
  EXPECT_EQ(request.layouts, (std::vector<Groups>{{{4, 4, 4}, {2, 1}}, {{3, 3}}, {{4, 4}, {1, 1}}}));
  EXPECT_EQ(request.ranks, (std::vector<Rank>{12, 6, 8}));
}

TEST(Request, RejectsInvalidLayouts) {
  EXPECT_NE(error({"verify", "--all", "--groups", "2x"}), "");
  EXPECT_EQ(error({"verify", "--all", "--groups", "2y2"}), "--groups 2y2: must be a layout, such as 2x4 or 3+5");
  EXPECT_NE(error({"verify", "--all", "--groups", "2x2,"}), "");
  EXPECT_EQ(error({"verify", "--all", "--ranks", "3-4", "--groups", "2x2"}),
            "--ranks 3: no layout of --groups has this number of ranks");
  EXPECT_EQ(error({"verify", "--all", "--groups", "4+4/3+9"}),
            "--groups: a level has 2 hosts, but the next level places 12");
  EXPECT_NE(error({"verify", "--all", "--groups", "2x3+1"}), "");
  EXPECT_NE(error({"verify", "--all", "--groups", "2000x501"}).find("more than 1000000 ranks"), std::string::npos);
  EXPECT_NE(
      error({"verify", "--all", "--ranks", "5", "--groups", "2x2"}).find("a layout of --groups has 4 ranks in total"),
      std::string::npos);
  EXPECT_NE(
      error({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--groups", "2x2,3+5"}).find("one layout"),
      std::string::npos);
}

TEST(Request, DescribesProblem) {
  const Request request =
      parse({"plan", "--collective", "reduce", "--algorithm", "chain", "--ranks", "4", "--root", "2", "--in-place"})
          .value();
  const Problem expected = {.collective = Collective::reduce, .ranks = 4, .root = 2, .in_place = true, .groups = {}};
  EXPECT_EQ(problem_of(request, 4), expected);
}

TEST(Request, RejectsRoot_WhenCollectiveHasNone) {
  EXPECT_EQ(error({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--ranks", "4", "--root", "2"}),
            "--root: all_reduce has no root");
}

TEST(Request, RejectsUnknownNames) {
  EXPECT_NE(
      error({"plan", "--collective", "sum"}).find("--collective: unknown collective 'sum': must be one of all_reduce"),
      std::string::npos);
  EXPECT_EQ(error({"plan", "--collective", "allreduce"}),
            "--collective: unknown collective 'allreduce': did you mean all_reduce?");
  EXPECT_EQ(error({"verify", "--all", "--ranks", "4-2"}), "--ranks: range '4-2' must begin with the smaller number");
  EXPECT_EQ(error({"verify", "--all", "--ranks", "-1"}), "--ranks -1: must be from 1 to 1024");
  EXPECT_EQ(error({"verify", "--all", "--ranks", "2,"}), "--ranks 2,: number missing before or after ','");
  EXPECT_EQ(error({"verify", "--all", "--ranks", "0"}), "--ranks 0: must be from 1 to 1024");
  EXPECT_EQ(error({"verify", "--all", "--ranks", "1-4,0"}), "--ranks 1-4,0: '0' must be from 1 to 1024");
}

TEST(Request, RejectsPlanOfSeveralProblems) {
  EXPECT_EQ(error({"plan", "--collective", "all_reduce", "--ranks", "2"}),
            "tutti plan needs --algorithm; see tutti plan --help");
  EXPECT_EQ(error({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--ranks", "2-3"}),
            "tutti plan needs one number of --ranks, or one layout of --groups");
  EXPECT_EQ(error({"plan", "--collective", "all_reduce", "--algorithm", "ring", "--ranks", "2", "--rank", "2"}),
            "--rank 2: must be from 0 to 1");
}

TEST(HostShapes, CoverAllRanksOnSeveralHosts) {
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
}  // namespace tutti::tool
