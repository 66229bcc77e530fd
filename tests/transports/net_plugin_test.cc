// Network plugins of NCCL: loading, devices, errors of each function, and the end of connections. A stand-in plugin
// makes the connections.
#include "transports/net_plugin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "src/base/log.h"
#include "tests/transports/ends.h"
#include "tests/transports/net_plugin/stand_in.h"
#include "transports/net_plugin/plugin.h"

namespace tutti::test {
namespace {

constexpr const char* kNewest = NET_STAND_IN_V12;
constexpr int kHost = 1;
constexpr long kLongest = 1 << 30;

const NetStandIn& stand_in(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  return *static_cast<const NetStandIn*>(::dlsym(library, "tutti_stand_in"));
}

std::string error_of(const NetPluginOptions& options) {
  auto opened = open_net_plugin(options);
  return opened.ok() ? "no error" : std::move(opened).status().message();
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A connection over a stand-in. The test fails if it leaves objects of the plugin behind.
class Connected {
 public:
  explicit Connected(const char* path = kNewest, std::uint8_t traffic_class = 0)
      : plugin_(stand_in(path)), before_(plugin_.live()) {
    auto source = open_net_plugin({.plugins = path, .traffic_class = traffic_class});
    if (!source.ok()) {
      ADD_FAILURE() << std::move(source).status().message();
      return;
    }
    ends = std::make_unique<Connections>(std::move(source).value());
    out = ends->writing(lane_of(1, kSlotBytes));
    in = ends->reading(lane_of(1, kSlotBytes));
  }
  ~Connected() {
    plugin_.stall(nullptr);
    ends.reset();
    EXPECT_EQ(plugin_.live(), before_) << "objects of the plugin were not released";
  }

  // Returns true if all messages arrived, false if an end was lost.
  bool stream(std::uint64_t messages) {
    const std::uint64_t last = in.next + messages;
    ends->until([&] {
      if (out.next < last && slot_free(out)) post(out, message_of(out.next, size_of(out.next)));
      while (simple_arrived(in)) EXPECT_TRUE(next_is(in, message_of(in.next, size_of(in.next))));
      return in.next == last || ends->ends[0]->lost() || ends->ends[1]->lost();
    });
    return in.next == last;
  }
  static std::size_t size_of(std::uint64_t number) { return number * 40'009 % (kSlotBytes + 1); }

  static constexpr std::uint32_t kSlotBytes = 192 << 10;  // Three frames.
  std::unique_ptr<Connections> ends;
  LaneState out, in;

 private:
  const NetStandIn& plugin_;
  int before_;
};

// ---- Loading ----

TEST(NetPluginLoader, TriesExactNameFirst) {
  const auto files = [](const char* name) { return files_of_net_plugin(name); };
  EXPECT_EQ(files("ofi"), (std::vector<std::string>{"ofi", "libnccl-net-ofi.so"}));
  EXPECT_EQ(files("libnccl-net-ofi.so"), (std::vector<std::string>{"libnccl-net-ofi.so"}));
  EXPECT_EQ(files("./ofi"), (std::vector<std::string>{"./ofi"}));
  EXPECT_EQ(files("libofi"), (std::vector<std::string>{"libofi", "libnccl-net-libofi.so"}));
}

TEST(NetPluginLoader, ReportsAllNamesTried) {
  const std::string error = error_of({.plugins = "no_such"});
  EXPECT_TRUE(contains(error, "cannot load a network plugin no_such: no_such: ")) << error;
  EXPECT_TRUE(contains(error, "; libnccl-net-no_such.so: ")) << error;
}

TEST(NetPluginLoader, LoadsNothing_WhenDisabled) {
  for (const char* none : {"none", "NONE", "None"}) EXPECT_TRUE(contains(error_of({.plugins = none}), "are disabled"));
  EXPECT_TRUE(contains(error_of({.plugins = ",,"}), "names no plugin: \",,\""));
}

TEST(NetPluginLoader, ReportsVersions_WhenNoneIsSupported) {
  EXPECT_TRUE(contains(error_of({.plugins = NET_STAND_IN_TOO_OLD}), "exports only 7 of "));
  EXPECT_TRUE(contains(error_of({.plugins = NET_STAND_IN_TOO_NEW}), "exports only 13 of "));
}

TEST(NetPluginLoader, RejectsPluginWithoutFunctions) {
  EXPECT_TRUE(contains(error_of({.plugins = NET_STAND_IN_HOLLOW}), "version 9) does not define init"));
}

TEST(NetPluginLoader, UsesFirstUsableOfList) {
  const auto text = describe_net_plugin({.plugins = std::string("no_such,") + NET_STAND_IN_V9 + "," + kNewest});
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text.value().ends_with("version 9), fast1 of 100000 Mbit/s, fast2 of 100000 Mbit/s")) << text.value();
  stand_in(NET_STAND_IN_V9).fail("devices", 1, 2);
  const auto next = describe_net_plugin({.plugins = std::string(NET_STAND_IN_V9) + "," + kNewest});
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(contains(next.value(), "version 12)")) << next.value();
}

TEST(NetPlugin, IsInitializedPerCommunicator_FromVersion11On) {
  for (const char* path : {NET_STAND_IN_V11, NET_STAND_IN_V12}) {
    const NetStandIn& plugin = stand_in(path);
    const int before = plugin.initialized(), objects = plugin.live();
    {
      const auto first = open_net_plugin({.plugins = path, .communicator = 5});
      const auto second = open_net_plugin({.plugins = path, .communicator = 0xfedc'ba98'7654'3210});
      ASSERT_TRUE(first.ok() && second.ok());
      EXPECT_EQ(plugin.last_communicator(), 0xfedc'ba98'7654'3210);
      EXPECT_EQ(plugin.live(), objects + 2);
    }
    EXPECT_EQ(plugin.initialized(), before + 2);
    EXPECT_EQ(plugin.live(), objects) << "finalize was not called";
  }
}

TEST(NetPlugin, PassesTrafficClass_ToConnectOfVersion10) {
  for (const auto& [given, passed] : {std::pair<std::uint8_t, int>{106, 106}, {0, -1}}) {
    Connected connected(NET_STAND_IN_V10, given);
    EXPECT_TRUE(connected.stream(1));
    EXPECT_EQ(stand_in(NET_STAND_IN_V10).last_traffic_class(), passed);
  }
}

TEST(NetPlugin, PassesTrafficClass_FromVersion11On) {
  for (const char* path : {NET_STAND_IN_V11, NET_STAND_IN_V12}) {
    const auto source = open_net_plugin({.plugins = path, .traffic_class = 106});
    ASSERT_TRUE(source.ok());
    EXPECT_EQ(stand_in(path).last_traffic_class(), 106);
    ASSERT_TRUE(open_net_plugin({.plugins = path}).ok());
    EXPECT_EQ(stand_in(path).last_traffic_class(), -1) << "not the plugin's default";
  }
}

TEST(NetPlugin, LogsThroughTutti) {
  static std::string lines;
  set_log_level(LogLevel::info);
  set_log_sink([](std::string_view line) { lines += line; });
  const auto source = open_net_plugin({.plugins = kNewest});
  set_log_sink(nullptr);
  set_log_level(LogLevel::warn);
  EXPECT_TRUE(contains(lines, "INFO network plugin: stand-in starts, version 12\n")) << lines;
}

TEST(NetPlugin, IsInitializedOnce_BeforeVersion11) {
  for (const char* path : {NET_STAND_IN_V8, NET_STAND_IN_V10}) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(open_net_plugin({.plugins = path}).ok());
    EXPECT_EQ(stand_in(path).initialized(), 1);
  }
}

// ---- Devices ----

class NetDevices : public testing::Test {
 protected:
  ~NetDevices() override { plugin_.set_devices(1000, kHost, kLongest); }
  const NetStandIn& plugin_ = stand_in(kNewest);
};

TEST_F(NetDevices, AreFastestOnesInTurn) {
  const auto used = [&](std::uint32_t first) {
    const auto source = open_net_plugin({.plugins = kNewest, .first_device = first});
    std::vector<int> devices;
    std::vector<std::unique_ptr<Carrier>> carriers;
    for (int i = 0; i < 3; ++i) {
      carriers.push_back(std::move(source.value()->make()).value());
      devices.push_back(plugin_.used_device());
    }
    return devices;
  };
  EXPECT_EQ(used(0), (std::vector<int>{1, 2, 1}));
  EXPECT_EQ(used(1), (std::vector<int>{2, 1, 2}));
  EXPECT_EQ(used(2), (std::vector<int>{1, 2, 1}));
}

TEST_F(NetDevices, AreNotUsable_WithoutHostMemoryOrFrames) {
  plugin_.set_devices(1000, 2, kLongest);
  EXPECT_TRUE(contains(error_of({.plugins = kNewest}), "device 2 (fast2) does not support host memory"));
  plugin_.set_devices(1000, kHost, 4096);
  EXPECT_TRUE(contains(error_of({.plugins = kNewest}), "device 1 (fast1) permits messages of 4096 bytes"));
}

// The devices 1 and 2 of one communicator each serve one end.
TEST_F(NetDevices, LimitConnections) {
  plugin_.set_devices(2, kHost, kLongest);
  EXPECT_TRUE(Connected().stream(20));
  plugin_.set_devices(1, kHost, kLongest);
  Connected connected;
  EXPECT_FALSE(connected.stream(20));
  EXPECT_TRUE(contains(connected.ends->why(), ") permits 1 connections, and all are in use")) << connected.ends->why();
}

// ---- Messages and errors ----

TEST(NetPlugin, CarriesMessages_WithEachVersion) {
  for (const char* path : {NET_STAND_IN_V8, NET_STAND_IN_V9, NET_STAND_IN_V10, NET_STAND_IN_V11, NET_STAND_IN_V12}) {
    Connected connected(path);
    EXPECT_TRUE(connected.stream(100)) << path << connected.ends->why();
  }
}

TEST(NetPlugin, MakesNoConnection_WithoutLanes) {
  const NetStandIn& plugin = stand_in(kNewest);
  const int before = plugin.live();
  Connections idle(std::move(open_net_plugin({.plugins = kNewest})).value());
  for (int i = 0; i < 100; ++i) idle.advance(i % 2);
  EXPECT_EQ(plugin.live(), before + 3) << "context and two listening connections";
  EXPECT_TRUE(idle.drained(0) && idle.drained(1));
}

// Listening connections are closed, and each direction has one connection and one registration at each end.
TEST(NetPlugin, NeedsTwoConnectionsPerEnd) {
  const NetStandIn& plugin = stand_in(kNewest);
  const int before = plugin.live();
  Connected connected;
  EXPECT_TRUE(connected.stream(20));
  EXPECT_EQ(plugin.live(), before + 1 + 2 * 4);
}

// An end that has nothing to send stays until the other end is connected, which may have something to send.
TEST(NetPlugin, IsNotDrained_UntilConnected) {
  Connected connected;
  stand_in(kNewest).stall("accept");
  for (int i = 0; i < 100; ++i) connected.ends->advance(i % 2);
  for (const int end : {0, 1}) EXPECT_FALSE(connected.ends->drained(end));
  stand_in(kNewest).stall(nullptr);
  for (const int end : {0, 1}) connected.ends->until([&] { return connected.ends->drained(end); });
}

struct Failure {
  const char* function;
  int calls;  // Number of calls that both ends make when a stream begins.
};
constexpr Failure kFailures[] = {{"connect", 4}, {"accept", 4},        {"regMr", 4},         {"isend", 6},
                                 {"irecv", 17},  {"test of isend", 6}, {"test of irecv", 6}, {"closeListen", 2}};

// Each call of each function fails once, also the second and later registration.
TEST(NetPlugin, ReportsFailedCall_AndReleasesAllObjects) {
  for (const char* path : {NET_STAND_IN_V8, kNewest}) {
    for (const Failure& failure : kFailures) {
      for (int call = 1; call <= failure.calls; ++call) {
        Connected connected(path);
        stand_in(path).fail(failure.function, call, 2);
        EXPECT_FALSE(connected.stream(100)) << failure.function << " " << call;
        const std::string why = connected.ends->why();
        EXPECT_TRUE(contains(why, std::string(": network plugin Stand-in (")) && contains(why, failure.function) &&
                    contains(why, " on device ") && contains(why, " failed with 2 (ncclSystemError)"))
            << failure.function << " " << call << why;
      }
    }
  }
}

TEST(NetPlugin, ReportsNamesOfCodes) {
  const std::pair<int, const char*> codes[] = {{1, "1 (ncclUnhandledCudaError)"},
                                               {6, "6 (ncclRemoteError)"},
                                               {7, "7 (ncclInProgress)"},
                                               {8, "8 (unknown code)"},
                                               {-1, "-1 (unknown code)"}};
  for (const auto& [code, text] : codes) {
    stand_in(NET_STAND_IN_V11).fail("init", 1, code);
    EXPECT_TRUE(error_of({.plugins = NET_STAND_IN_V11}).ends_with(std::string(": init failed with ") + text));
  }
  stand_in(NET_STAND_IN_V8).fail("getProperties", 2, 3);
  EXPECT_TRUE(
      error_of({.plugins = NET_STAND_IN_V8}).ends_with("getProperties of device 1 failed with 3 (ncclInternalError)"));
}

// The stand-in sets a result that it has already released.
TEST(NetPlugin, IgnoresConnection_WhenListenFails) {
  const auto source = open_net_plugin({.plugins = kNewest});
  const int before = stand_in(kNewest).live();
  stand_in(kNewest).fail("listen", 1, 5);
  auto made = source.value()->make();
  ASSERT_FALSE(made.ok());
  EXPECT_TRUE(
      std::move(made).status().message().ends_with("listen on device 1 (fast1) failed with 5 (ncclInvalidUsage)"));
  EXPECT_EQ(stand_in(kNewest).live(), before);
}

// ---- The end ----

// Whatever call is endless, one end can leave, and the other one notices.
TEST(NetPlugin, LeavesWhilePluginStalls) {
  for (const char* function : {"connect", "accept", "isend", "irecv"}) {
    for (const int early : {0, 30}) {  // Steps before the plugin stalls.
      Connected connected;
      for (int i = 0; i < early; ++i) connected.ends->advance(i % 2);
      stand_in(kNewest).stall(function);
      post(connected.out, message_of(0, 1000));
      for (int i = 0; i < 100; ++i) connected.ends->advance(i % 2);
      connected.ends->ends[0].reset();
      connected.ends->until([&] { return connected.ends->ends[1]->lost(); });
    }
  }
}

// An end leaves right after its last message. The other end receives all messages, although it did not read before, and
// both close connections without pending requests.
TEST(NetPlugin, DeliversLastMessages_WhenPeerLeaves) {
  const int unclean = stand_in(kNewest).closed_with_requests();
  for (int repetition = 0; repetition < 20; ++repetition) {
    Connected connected;
    ASSERT_TRUE(connected.stream(4));
    const std::uint64_t last = connected.out.next + HalfLane::kSlots / 2;
    while (connected.out.next < last) post(connected.out, message_of(connected.out.next, 5000));
    std::thread leaver([&] {
      while (!connected.ends->drained(0)) connected.ends->wait(0, 1);
      connected.ends->ends[0].reset();
    });
    const Deadline deadline = Deadline::after_ms(kTimeoutMs);
    while (!connected.ends->ends[1]->lost() && !deadline.passed()) connected.ends->ends[1]->advance_all();
    leaver.join();
    while (simple_arrived(connected.in)) EXPECT_TRUE(next_is(connected.in, message_of(connected.in.next, 5000)));
    EXPECT_EQ(connected.in.next, last);
    EXPECT_TRUE(contains(connected.ends->why(), "the other end closed it")) << connected.ends->why();
  }
  // An end that waits for a CPU for 200 ms may close with requests. Without goodbyes, both ends always do: 40 times.
  EXPECT_LE(stand_in(kNewest).closed_with_requests() - unclean, 4) << "the ends did not complete their receives";
}

// The peer dies without a goodbye: TCP reports it, and the end does not wait for the plugin for ever.
TEST(NetPlugin, ReleasesObjects_WhenPeerDoesNotAnswer) {
  Connected connected;
  ASSERT_TRUE(connected.stream(4));
  post(connected.out, message_of(connected.out.next, 5000));
  const int before = stand_in(kNewest).live();
  const auto& ends = connected.ends->ends;
  ASSERT_EQ(::shutdown(ends[1]->socket().get(), SHUT_RDWR), 0);
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  while (!ends[0]->lost() && !deadline.passed()) ends[0]->advance();
  EXPECT_TRUE(contains(connected.ends->why(), "the other end closed it")) << connected.ends->why();
  connected.ends->ends[0].reset();
  EXPECT_EQ(stand_in(kNewest).live(), before - 4);
}

// A thread of the parent is in a call of the plugin, and has the lock, when the process forks. The child destroys the
// other end without a call of the plugin.
TEST(NetPlugin, IsNotUsed_InForkedChild) {
  Connected connected;
  ASSERT_TRUE(connected.stream(4));
  const NetStandIn& plugin = stand_in(kNewest);
  const int live = plugin.live();
  plugin.block("test of irecv");
  std::thread caller([&] { connected.ends->ends[0]->advance_all(); });
  const Deadline deadline = Deadline::after_ms(kTimeoutMs);
  while (!plugin.is_blocked() && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(plugin.is_blocked());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // A hang becomes a failure.
    connected.ends->ends[1].reset();
    ::_exit(plugin.live() == live ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  plugin.block(nullptr);
  caller.join();
  EXPECT_TRUE(connected.stream(4)) << connected.ends->why();
}

}  // namespace
}  // namespace tutti::test
