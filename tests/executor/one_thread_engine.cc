#include "tests/executor/one_thread_engine.h"

#include <algorithm>

#include "src/executor/thread_block/channel.h"

namespace tutti::test {
namespace {

// Rounds without progress after which the engine reports a deadlock. Publishing buffer addresses is not progress.
constexpr int kIdleRounds = 4;

class LoneThread {
 public:
  static constexpr std::uint32_t thread() { return 0; }
  static constexpr std::uint32_t thread_count() { return 1; }
  static constexpr std::uint32_t slice(std::uint32_t) { return 0; }
  static constexpr MessagePart part(std::uint32_t) { return {0, 1, {0, 1}}; }
  static constexpr void join() {}
  static constexpr Progress agree(Progress progress) { return progress; }
  static constexpr bool stopped() { return true; }
  static constexpr bool too_late() { return false; }
};

// One channel of a rank's call.
struct Lone {
  const KernelCall* call;
  std::uint32_t channel;
  ThreadBlockProgress saved;

  // Returns whether the channel progressed.
  bool advance(std::byte* memory) {
    const ThreadBlockProgress before = saved;
    Channel<LoneThread> run(*call, channel, {}, memory, &saved);
    const Progress progress = run.run();
    if (progress == Progress::done) saved.state = ThreadBlockState::done;
    if (progress == Progress::mismatch) saved.state = ThreadBlockState::failed;
    return saved.state != before.state || !(saved.cursor == before.cursor);
  }
};

std::string run_to_the_end(std::vector<Lone>& thread_blocks, std::byte* memory) {
  for (int idle = 0; idle < kIdleRounds; ++idle) {
    std::size_t done = 0;
    for (Lone& block : thread_blocks) {
      if (block.saved.state < ThreadBlockState::done && block.advance(memory)) idle = 0;
      if (block.saved.state == ThreadBlockState::failed) return "a message of another call";
      if (block.saved.state == ThreadBlockState::done) ++done;
    }
    if (done == thread_blocks.size()) return "";
  }
  return "no rank gets ahead";
}

}  // namespace

std::string OneThreadEngine::run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) {
  std::uint32_t bytes = 0;
  for (const auto& own : calls)
    bytes = std::max(bytes, ChannelLayout(*reinterpret_cast<const Image*>(own.front().image)).bytes);
  std::vector<Pack> memory(bytes / sizeof(Pack) + 1);
  for (std::size_t operation = 0; operation < calls.front().size(); ++operation) {
    std::vector<Lone> thread_blocks;
    for (const auto& own : calls) {
      for (std::uint32_t channel = 0; channel < channels; ++channel)
        thread_blocks.push_back({&own[operation], channel, {}});
    }
    const std::string error = run_to_the_end(thread_blocks, reinterpret_cast<std::byte*>(memory.data()));
    if (!error.empty()) return error + " in operation " + std::to_string(operation);
  }
  return "";
}

}  // namespace tutti::test
