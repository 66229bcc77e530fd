#include "src/tuner/tune_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/tuner/folder.h"

namespace tutti::test {
namespace {

using test::Folder;

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TuneCache some_cache() {
  TuneCache cache;
  cache.keep("0.1.0, hosts 2, machine of one",
             {Collective::all_gather,
              33,
              {{"direct", Protocol::simple, 32768, 1, 11.25, 10.5}, {"ring", Protocol::simple, 65536, 1, 12, 0}}});
  cache.keep("0.1.0, hosts 2, machine of one",
             {Collective::all_reduce, 6, {{"one_shot", Protocol::ll, 560, 2, 0.1, 0.07}}});
  cache.keep("0.1.0, hosts 2, machine of one",
             {Collective::all_gather, 33, {{"direct_mapped", Protocol::simple, 65536, 1, 9.5, 7.25}}, true});
  cache.keep("another", {Collective::scatter, 0, {{"direct", Protocol::ll128, 1, 1, 3, 1e9}}});
  return cache;
}

std::string refusal(const std::string& text) {
  auto parsed = parse_tune_cache(text);
  return parsed.ok() ? "" : std::move(parsed).status().message();
}

TEST(TuneCache, SizeClassesAreHalvesOfPowersOfTwo) {
  EXPECT_EQ(size_class(0), size_class(1));
  std::uint32_t last = size_class(1);
  for (std::uint64_t bytes = 2; bytes < 100'000; ++bytes) {
    const std::uint32_t now = size_class(bytes);
    const bool begins = (bytes & (bytes - 1)) == 0 || (bytes % 3 == 0 && (bytes / 3 & (bytes / 3 - 1)) == 0);
    ASSERT_EQ(now != last, begins) << bytes;
    ASSERT_EQ(min_bytes(now) == bytes, begins) << bytes;
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(size_class(~std::uint64_t{0}), 127U);
}

TEST(TuneCache, ReadsWhatItWrote) {
  const TuneCache cache = some_cache();
  auto parsed = parse_tune_cache(format(cache));
  ASSERT_TRUE(parsed.ok()) << std::move(parsed).status().message();
  EXPECT_EQ(parsed.value(), cache);
  EXPECT_EQ(parsed.value().find("another")->classes.size(), 1U);
  EXPECT_EQ(parsed.value().find("a third"), nullptr);
}

TEST(TuneCache, AcceptsEmptyFilesAndComments) {
  EXPECT_TRUE(parse_tune_cache("").ok());
  auto parsed = parse_tune_cache("tutti-tune 2\n# by hand\n\nmachine m\nclass reduce 4\nkept direct Simple 8 1 2 3\n");
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed.value().machines.size(), 1U);
  EXPECT_EQ(parsed.value().machines[0].name, "m");
}

TEST(TuneCache, KeepsLatestOfEachClass) {
  TuneCache cache = some_cache();
  TunedClass again = cache.machines[0].classes[0];
  std::swap(again.candidates[0], again.candidates[1]);
  cache.keep(cache.machines[0].name, again);
  ASSERT_EQ(cache.machines[0].classes.size(), 3U) << "calls by mapped memory are a class of their own";
  EXPECT_EQ(cache.machines[0].classes[2], again);
  for (int i = 0; i < 1000; ++i) cache.keep("machine " + std::to_string(i), again);
  auto parsed = parse_tune_cache(format(cache));
  ASSERT_TRUE(parsed.ok()) << "what was written cannot be read: " << std::move(parsed).status().message();
  EXPECT_NE(parsed.value().find("machine 999"), nullptr);
}

TEST(TuneCache, NamesLineOfError) {
  const std::string head = "tutti-tune 2\nmachine m\n";
  const std::string kept = "kept direct Simple 8 1 2 3\n";
  EXPECT_NE(refusal("something else\n").find("line 1 "), std::string::npos);
  EXPECT_NE(refusal("tutti-tune 3\n").find("another version wrote the file"), std::string::npos);
  EXPECT_NE(refusal("tutti-tune 2\nclass reduce 4\n").find("line 2 "), std::string::npos);
  for (const char* line :
       {"class reduce", "class reduce 128", "class reduce -1", "class send 4", "class reduce 4 5", "class reduce 4 map",
        "class reduce 4 mapped 5", "kept direct Simple 8 1 2 3", "tried direct Simple 8 1 2 3", "else"}) {
    EXPECT_NE(refusal(head + line + "\n" + kept).find("line 3 "), std::string::npos) << line;
  }
  for (const char* line :
       {"kept direct Simple 8 1 2", "kept direct sand 8 1 2 3", "kept direct Simple -8 1 2 3",
        "kept direct Simple 8 1 nan 3", "kept direct Simple 8 1 2 inf", "kept direct Simple 8 1 2 -3",
        "kept direct Simple 99999999999999999999 1 2 3", "tried direct Simple 8 1 2 3"}) {
    EXPECT_NE(refusal(head + "class reduce 4\n" + line + "\n").find("line 4 "), std::string::npos) << line;
  }
  EXPECT_NE(refusal(head + "class reduce 4\n"), "");
  EXPECT_NE(refusal(head + "class reduce 4\n" + kept.substr(0, kept.size() - 1)).find("truncated"), std::string::npos);
}

TEST(TuneCache, RejectsOrReadsRandomEdits) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole = format(some_cache());
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    for (auto edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % text.size(), length = random() % 40, from = random() % whole.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.resize(at + 1); break;
        case 2: text.insert(at, whole.substr(from, length)); break;
        case 3: text.erase(at, length); break;
      }
      if (text.empty()) text = "t";
    }
    auto parsed = parse_tune_cache(text);
    if (!parsed.ok()) continue;
    auto again = parse_tune_cache(format(parsed.value()));
    ASSERT_TRUE(again.ok()) << text;
    ASSERT_EQ(again.value(), parsed.value()) << text;
  }
}

TEST(TuneCache, CreatesAndExtendsFile) {
  const Folder folder;
  const TuneCache cache = some_cache();
  ASSERT_TRUE(read_tune_cache(folder.file()).ok());
  for (const TuneCache::Machine& machine : cache.machines) {
    const Status added = add_to_tune_cache(folder.file(), machine);
    ASSERT_TRUE(added.ok()) << added.message();
  }
  auto known = read_tune_cache(folder.file());
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(known.value(), cache);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(TuneCache, FileIsComplete_DuringConcurrentWrites) {
  const Folder folder;
  const TuneCache cache = some_cache();
  ASSERT_TRUE(add_to_tune_cache(folder.file(), cache.machines[0]).ok());
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) EXPECT_TRUE(add_to_tune_cache(folder.file(), cache.machines[1]).ok());
    });
  }
  for (int round = 0; round < 50; ++round) {
    auto known = read_tune_cache(folder.file());
    EXPECT_TRUE(known.ok() && known.value().find(cache.machines[0].name) != nullptr);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(folder.files(), 1U);
}

// Each writer has its own classes, and must not overwrite those of other writers.
TEST(TuneCache, LosesNothing_DuringConcurrentAdds) {
  const Folder folder;
  constexpr std::uint32_t kWriters = 4, kRounds = 20;
  std::vector<std::thread> writers;
  for (std::uint32_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      TunedClass tuned = some_cache().machines[0].classes[0];
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        tuned.size_class = writer * kRounds + round;
        const Status added = add_to_tune_cache(folder.file(), {"m", {tuned}});
        EXPECT_TRUE(added.ok()) << added.message();
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  auto known = read_tune_cache(folder.file());
  ASSERT_TRUE(known.ok()) << std::move(known).status().message();
  ASSERT_NE(known.value().find("m"), nullptr);
  EXPECT_EQ(known.value().find("m")->classes.size(), kWriters * kRounds);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(TuneCache, GivesUp_WhenFileStaysLocked) {
  const Folder folder;
  ASSERT_TRUE(add_to_tune_cache(folder.file(), some_cache().machines[0]).ok());
  const std::string before = read(folder.file());
  const int held = ::open(folder.file().c_str(), O_RDONLY);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  const Status added = add_to_tune_cache(folder.file(), some_cache().machines[1]);
  EXPECT_EQ(added.code(), Code::timeout) << added.message();
  EXPECT_EQ(read(folder.file()), before);
  ::close(held);
  EXPECT_TRUE(add_to_tune_cache(folder.file(), some_cache().machines[1]).ok());
}

TEST(TuneCache, FileStaysSmallEnoughToRead) {
  const Folder folder;
  TuneCache::Machine large = {"", {}};
  for (std::uint32_t i = 0; i < 8 * 128; ++i) {
    TunedClass& tuned = large.classes.emplace_back();
    tuned.collective = static_cast<Collective>(i / 128);
    tuned.size_class = i % 128;
    tuned.candidates.assign(30, {std::string(20, 'a'), Protocol::simple, 32768, 1, 0.1, 0.1});
  }
  for (const char* name : {"first", "second", "first", "third"}) {
    large.name = name;
    const Status added = add_to_tune_cache(folder.file(), large);
    ASSERT_TRUE(added.ok()) << added.message();
    auto known = read_tune_cache(folder.file());
    ASSERT_TRUE(known.ok()) << std::move(known).status().message();
    ASSERT_NE(known.value().find(name), nullptr);
  }
  auto known = read_tune_cache(folder.file());
  EXPECT_NE(known.value().find("first"), nullptr) << "it was added to after the second";
  EXPECT_EQ(known.value().find("second"), nullptr) << "nothing had to go";
}

TEST(TuneCache, DoesNotWriteInvalidNames) {
  const Folder folder;
  TuneCache::Machine machine = some_cache().machines[0];
  for (const std::string& name : {std::string(393, 'n'), std::string("a\nb"), std::string(""), std::string(" a")}) {
    machine.name = name;
    EXPECT_FALSE(add_to_tune_cache(folder.file(), machine).ok()) << name;
  }
  EXPECT_EQ(folder.files(), 0U);
  machine.name = std::string(392, 'n');
  EXPECT_TRUE(add_to_tune_cache(folder.file(), machine).ok());
  EXPECT_TRUE(read_tune_cache(folder.file()).ok());
}

TEST(TuneCache, LeavesOtherFilesAlone) {
  const Folder folder;
  for (const std::string& text : {std::string("my thesis\n"), format(some_cache()).substr(0, 100)}) {
    write(folder.file(), text);
    const Status added = add_to_tune_cache(folder.file(), some_cache().machines[0]);
    ASSERT_FALSE(added.ok());
    EXPECT_NE(added.message().find(folder.file()), std::string::npos);
    EXPECT_EQ(read(folder.file()), text);
    EXPECT_EQ(folder.files(), 1U);
  }
}

TEST(TuneCache, RejectsInvalidFiles) {
  const Folder folder;
  EXPECT_FALSE(read_tune_cache("/").ok());
  EXPECT_FALSE(add_to_tune_cache("/nowhere/at/all", some_cache().machines[0]).ok());
  ASSERT_EQ(::mkfifo(folder.file().c_str(), 0600), 0);
  EXPECT_FALSE(read_tune_cache(folder.file()).ok());
  std::filesystem::remove(folder.file());
  write(folder.file(), "");
  std::filesystem::resize_file(folder.file(), 1ULL << 40);
  EXPECT_FALSE(read_tune_cache(folder.file()).ok());
}

}  // namespace
}  // namespace tutti::test
