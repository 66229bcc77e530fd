// Registration of memory as regions: accepted kinds of memory, and other memory that stays unchanged.
#include "src/communicator/control/regions.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace tutti::test {
namespace {

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

class Mapped {
 public:
  Mapped(std::size_t pages, int protection, int flags, int file = -1)
      : bytes_(pages * kPage), memory_(::mmap(nullptr, bytes_, protection, flags, file, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~Mapped() { ::munmap(memory_, bytes_); }
  std::byte* page(std::size_t index) const { return static_cast<std::byte*>(memory_) + index * kPage; }

 private:
  std::size_t bytes_;
  void* memory_;
};

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;

Status register_memory(std::byte* memory, std::size_t pages) {
  return Regions::of_process().register_memory(memory, pages * kPage);
}
Status deregister_memory(std::byte* memory) { return Regions::of_process().deregister_memory(memory); }

// Registers an exit() handler before the process creates its first region, so that it runs after handlers of the
// library. It must still be able to use and free regions.
TEST(Regions, OutliveExitHandlers) {
  const pid_t child = ::fork();
  if (child == 0) {
    static std::byte* memory;
    const auto use = [] {
      *memory = std::byte{1};
      ::_exit(Regions::of_process().free(memory).ok() ? 5 : 6);
    };
    if (std::atexit(use) != 0) ::_exit(7);
    memory = Regions::of_process().allocate(1).value();
    std::exit(8);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5) << status;
}

TEST(Regions, AcceptAnonymousAndHeapMemory_KeepingContents) {
  const Mapped mapped(4, kReadWrite, kPrivate);
  auto* heap = static_cast<std::byte*>(std::aligned_alloc(kPage, 2 * kPage));
  for (std::byte* memory : {mapped.page(1), heap}) {
    std::memset(memory, 5, 2 * kPage);
    const Status enrolled = register_memory(memory, 2);
    ASSERT_TRUE(enrolled.ok()) << enrolled.message();
    EXPECT_EQ(memory[2 * kPage - 1], std::byte{5});
    EXPECT_TRUE(Regions::of_process().find(memory, 2 * kPage));
    memory[0] = std::byte{6};
    EXPECT_TRUE(deregister_memory(memory).ok());
    EXPECT_EQ(memory[0], std::byte{6});
    EXPECT_FALSE(Regions::of_process().find(memory, 1));
  }
  std::free(heap);
}

TEST(Regions, RejectOtherKindsOfMemory) {
  const int file = ::open("/proc/self/exe", O_RDONLY);
  const Mapped of_file(1, kReadWrite, MAP_PRIVATE, file);
  const Mapped shared(1, kReadWrite, MAP_SHARED | MAP_ANONYMOUS);
  const Mapped read_only(1, PROT_READ, kPrivate);
  const Mapped half(2, kReadWrite, kPrivate);
  const Mapped gap(2, kReadWrite, kPrivate);
  ASSERT_EQ(::mprotect(half.page(1), kPage, PROT_NONE), 0);
  ASSERT_EQ(::munmap(gap.page(1), kPage), 0);
  const std::byte before = of_file.page(0)[1];
  const struct {
    std::byte* memory;
    std::size_t pages;
    const char* expected;
  } cases[] = {{of_file.page(0), 1, "communicator_"},
               {shared.page(0), 1, "rw-s"},
               {read_only.page(0), 1, "r--p"},
               {half.page(0), 2, "---p"},
               {gap.page(0), 2, "nothing mapped"}};
  for (const auto& [memory, pages, expected] : cases) {
    const Status status = register_memory(memory, pages);
    EXPECT_EQ(status.code(), Code::unsupported) << expected;
    EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
  }
  EXPECT_EQ(of_file.page(0)[1], before);
  // Maps the gap again, so that the destructor of `gap` unmaps no other memory.
  EXPECT_EQ(::mmap(gap.page(1), kPage, PROT_NONE, kPrivate | MAP_FIXED_NOREPLACE, -1, 0), gap.page(1));
  ::close(file);
  EXPECT_NE(register_memory(read_only.page(0), 1)
                .message()
                .find("is 'r--p': only private anonymous memory that may be written"),
            std::string::npos);
}

TEST(Regions, NameFunctionThatReleasesMemory) {
  Regions& regions = Regions::of_process();
  const Mapped mapped(1, kReadWrite, kPrivate);
  ASSERT_TRUE(register_memory(mapped.page(0), 1).ok());
  auto allocated = regions.allocate(1);
  ASSERT_TRUE(allocated.ok());
  const Status free = regions.free(mapped.page(0));
  EXPECT_NE(free.message().find("call tutti_mem_deregister"), std::string::npos) << free.message();
  const Status withdrawn = regions.deregister_memory(allocated.value());
  EXPECT_NE(withdrawn.message().find("call tutti_mem_free"), std::string::npos) << withdrawn.message();
  EXPECT_TRUE(deregister_memory(mapped.page(0)).ok());
  EXPECT_TRUE(regions.free(allocated.value()).ok());
}

TEST(Regions, RejectSizesBeyondAddressSpace) {
  const std::uintptr_t last_page = ~std::uintptr_t{0} - (kPage - 1);
  const Status refused[] = {Regions::of_process().register_memory(reinterpret_cast<std::byte*>(last_page), kPage),
                            Regions::of_process().register_memory(reinterpret_cast<std::byte*>(kPage), last_page),
                            Regions::of_process().allocate(last_page).status(),
                            Regions::of_process().allocate(std::size_t{1} << 47).status(),
                            Regions::of_process().allocate(~std::size_t{0}).status()};
  for (const Status& status : refused) {
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find("more than there is address space"), std::string::npos) << status.message();
  }
}

TEST(Regions, ReportMemoryUnmappedWhileRegistered) {
  for (const bool reused : {false, true}) {
    const Mapped mapped(3, kReadWrite, kPrivate);
    std::byte* memory = mapped.page(1);
    ASSERT_TRUE(register_memory(memory, 1).ok());
    ASSERT_EQ(::munmap(memory, kPage), 0);
    const int protection = reused ? kReadWrite : PROT_NONE;  // PROT_NONE keeps the addresses from being reused.
    ASSERT_EQ(::mmap(memory, kPage, protection, kPrivate | MAP_FIXED_NOREPLACE, -1, 0), memory);
    if (reused) *memory = std::byte{5};
    const Status status = deregister_memory(memory);
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find("deregister before free() or munmap()"), std::string::npos) << status.message();
    if (!reused) continue;
    EXPECT_EQ(*memory, std::byte{5});  // Neither replaced nor unmapped.
    EXPECT_TRUE(register_memory(memory, 1).ok());
    EXPECT_TRUE(deregister_memory(memory).ok());  // The first deregister_memory() has removed the region.
  }
}

TEST(Regions, RejectOverlap) {
  const Mapped mapped(4, kReadWrite, kPrivate);
  ASSERT_TRUE(register_memory(mapped.page(1), 2).ok());
  EXPECT_EQ(register_memory(mapped.page(0), 2).code(), Code::invalid_usage);  // Overlaps the beginning of the region.
  EXPECT_EQ(register_memory(mapped.page(0), 4).code(), Code::invalid_usage);  // Contains the region.
  EXPECT_EQ(register_memory(mapped.page(2), 2).code(), Code::invalid_usage);  // Overlaps the end of the region.
  EXPECT_TRUE(register_memory(mapped.page(0), 1).ok());                       // Adjacent to the region.
  EXPECT_TRUE(deregister_memory(mapped.page(0)).ok());
  EXPECT_TRUE(deregister_memory(mapped.page(1)).ok());
}

// Two threads register the same memory. Only one may succeed, since a second replacement of the pages would discard
// data of the first.
TEST(Regions, AcceptMemoryOnce_FromConcurrentThreads) {
  for (int i = 0; i < 200; ++i) {
    const Mapped mapped(16, kReadWrite, kPrivate);
    std::atomic<int> taken = 0;
    std::atomic<int> ready = 0;
    const auto take = [&] {
      for (++ready; ready < 2;) std::this_thread::yield();
      if (register_memory(mapped.page(0), 16).ok()) ++taken;
    };
    std::thread other(take);
    take();
    other.join();
    ASSERT_EQ(taken, 1) << "attempt " << i;
    ASSERT_TRUE(deregister_memory(mapped.page(0)).ok());
  }
}

TEST(Regions, SuggestRemedy_WhenOutOfDescriptors) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  auto made = Regions::of_process().allocate(1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(made.ok());
  const Status status = std::move(made).status();
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_NE(status.message().find("larger segments, or raise the limit with ulimit -n"), std::string::npos)
      << status.message();
}

// Allocates beyond the limit of file size. The kernel would send SIGXFSZ, which kills the process, unless the library
// checks the limit first.
TEST(Regions, SuggestRemedy_WhenFileSizeIsLimited) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {kPage, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto fits = Regions::of_process().allocate(kPage);
  auto made = Regions::of_process().allocate(kPage + 1);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(fits.ok());
  EXPECT_TRUE(Regions::of_process().free(fits.value()).ok());
  ASSERT_FALSE(made.ok());
  const Status status = std::move(made).status();
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_NE(status.message().find("raise the limit of file size (ulimit -f)"), std::string::npos) << status.message();
}

TEST(PeerRegions, FindOnlyBuffersWhollyInsideARegion) {
  const Segment segment = Segment::create("tutti-memory", 2 * kPage).value();
  const std::uint64_t offer[] = {5, 2 * kPage};  // Id and size of the region.
  ReceivedFrame received;
  received.frame.bytes = sizeof offer;
  std::memcpy(received.frame.payload.data(), offer, sizeof offer);
  received.file = segment.duplicate().value();
  PeerRegions regions;
  ASSERT_TRUE(regions.adopt(1, std::move(received)).ok());
  EXPECT_EQ(regions.locate(1, {5, kPage}, kPage), regions.locate(1, {5, 0}, 1) + kPage);
  EXPECT_EQ(regions.locate(1, {5, kPage}, kPage + 1), nullptr);
  EXPECT_EQ(regions.locate(1, {5, 3 * kPage}, 1), nullptr);
  EXPECT_EQ(regions.locate(1, {5, kPage}, ~std::uint64_t{0}), nullptr);
  EXPECT_EQ(regions.locate(1, {6, 0}, 1), nullptr);
  EXPECT_EQ(regions.locate(0, {5, 0}, 1), nullptr);
}

}  // namespace
}  // namespace tutti::test
