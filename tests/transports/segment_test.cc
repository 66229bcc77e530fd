// Shared memory that ranks pass to each other.
#include "transports/shm/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace tutti::test {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

Segment make(Forked forked = Forked::dropped) {
  return std::move(Segment::create("tutti-test", kBytes, forked)).value();
}
Segment adopted(const Segment& segment) {
  return std::move(Segment::adopt(std::move(segment.duplicate()).value(), kBytes)).value();
}

bool is_mapped(const std::byte* address) {
  unsigned char resident = 0;
  return ::mincore(const_cast<std::byte*>(address), 1, &resident) == 0;
}

TEST(Segment, IsMappedAtOneAddress_ForAllRanksOfProcess) {
  const Segment own = make();
  std::vector<std::byte*> seen(8);
  std::atomic<int> started{0};
  std::vector<std::thread> threads;
  std::vector<Segment> peers(8);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] {
      ++started;
      while (started < 8) std::this_thread::yield();
      peers[i] = adopted(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Segment& peer : peers) EXPECT_EQ(peer.data(), own.data());
  EXPECT_NE(make().data(), own.data());
}

TEST(Segment, StaysMapped_UntilLastRankReleasesIt) {
  Segment own = make();
  Segment peer = adopted(own);
  std::byte* const data = own.data();
  own.data()[kBytes - 1] = std::byte{42};
  own = Segment();
  EXPECT_EQ(peer.data()[kBytes - 1], std::byte{42});
  peer = Segment();
  EXPECT_FALSE(is_mapped(data));
}

// The descriptor outlives all mappings. The next mapping is new, and shows the contents of the file.
TEST(Segment, IsMappedAgain_WhenAllRanksReleasedIt) {
  Segment own = make();
  own.data()[0] = std::byte{7};
  File file = std::move(own.duplicate()).value();
  own = Segment();
  const Segment again = std::move(Segment::adopt(std::move(file), kBytes)).value();
  EXPECT_EQ(again.data()[0], std::byte{7});
}

// The owner may replace its mapping by a private copy, which must not affect the peer's mapping.
TEST(Segment, IsMappedSeparately_WhenOwnerMayMakeItPrivate) {
  Segment own = make(Forked::kept);
  const Segment peer = adopted(own);
  EXPECT_NE(peer.data(), own.data());
  std::byte* const data = own.data();
  data[0] = std::byte{1};
  ASSERT_TRUE(own.make_private().ok());
  data[0] = std::byte{2};
  EXPECT_EQ(peer.data()[0], std::byte{1});
  ::munmap(data, kBytes);
}

TEST(Segment, HasNoName) {
  const Segment own = make();
  struct stat shared = {}, directory = {};
  ASSERT_EQ(::fstat(own.descriptor(), &shared), 0);
  EXPECT_EQ(shared.st_nlink, 0U);
  const bool exists = ::stat("/dev/shm", &directory) == 0;
  EXPECT_TRUE(!exists || shared.st_dev != directory.st_dev);
}

Status adopting(File file, std::size_t bytes) { return Segment::adopt(std::move(file), bytes).status(); }

// The error is a peer's fault and is reported to all ranks, so it is not invalid_argument.
void expect_refusal(const Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_EQ(status.message(), words);
}

TEST(Segment, IsRejected_WhenShorterThanAnnounced) {
  const Segment own = make();
  expect_refusal(adopting(std::move(own.duplicate()).value(), kBytes + 1),
                 "a peer's shared memory has 65536 bytes where it announced 65537");
}

TEST(Segment, IsRejected_WhenItMayShrink) {
  File unsealed(::memfd_create("tutti-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kBytes), 0);
  expect_refusal(adopting(std::move(unsealed), kBytes), "a peer's shared memory is not sealed");
  File ordinary(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  expect_refusal(adopting(std::move(ordinary), 1), "a peer's shared memory is not sealed");
}

TEST(Segment, IsRejected_WhenItIsNoFile) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const File other(ends[1]);
  EXPECT_EQ(adopting(File(ends[0]), kBytes).code(), Code::invalid_usage);
  EXPECT_EQ(adopting(File(), kBytes).code(), Code::system);
}

TEST(Segment, SuggestsRemedy_WhenOutOfDescriptors) {
  const Segment own = make();
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {1, before.rlim_max};  // 0 would be an invalid starting descriptor.
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status made = Segment::create("tutti-test", kBytes).status();
  const Status duplicated = own.duplicate().status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const Status* status : {&made, &duplicated}) {
    EXPECT_EQ(status->code(), Code::system);
    const std::string& text = status->message();
    EXPECT_NE(text.find("the limit of this process is 1; "), std::string::npos) << text;
    EXPECT_NE(text.find("larger segments, or raise the limit with ulimit -n"), std::string::npos) << text;
  }
}

TEST(Segment, SuggestsRemedy_WhenOutOfAddressSpace) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  // Leaves memory for a sanitizer beside its existing mappings, which may cover most of the address space.
  std::size_t pages = 0;
  ASSERT_TRUE(std::ifstream("/proc/self/statm") >> pages);
  const rlimit limited = {pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{1} << 30),
                          before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const Status status = Segment::create("tutti-test", std::size_t{1} << 32).status();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_NE(status.message().find("raise the limit with ulimit -v"), std::string::npos) << status.message();
}

TEST(Segment, CannotBeShrunkByPeer) {
  const Segment own = make();
  EXPECT_NE(::ftruncate(own.descriptor(), 0), 0);
}

// Makes memfd_create fail with ENOSYS for the rest of this process.
bool refuse_memfd_create() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(filter), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Segment, NamesTheSystemCall_WhenASeccompFilterRefusesIt) {
  constexpr int no_seccomp = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!refuse_memfd_create()) ::_exit(no_seccomp);
    const Status status = Segment::create("tutti-test", kBytes).status();
    ::_exit(status.message().find("refuses memfd_create") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_seccomp) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti::test
