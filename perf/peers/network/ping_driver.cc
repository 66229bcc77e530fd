// Measures the minimum time to send 8 bytes over TCP between two programs that spin.
//   ping_driver serve ADDRESS PORT CORE         answers the first client until it disconnects
//   ping_driver ask ADDRESS PORT CORE ROUNDS    prints half a round trip in us (median and minimum of 20 parts) and the
//                                               congestion control of its socket
//   ping_driver join ADDRESS PORT CORE ROUNDS   the peer of meet
//   ping_driver meet ADDRESS PORT CORE ROUNDS   prints the time of an exchange with join: both send at once, then
//                                               wait for the other's message, like ranks of an all-reduce
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kParts = 20;
constexpr std::size_t kBytes = 8;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "ping_driver: %s: %s\n", what, std::strerror(errno));
  std::exit(2);
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) fail("binding to a core");
}

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

Address resolve(const char* host, const char* port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, port, &hints, &found) != 0) fail("the address or port is not numeric");
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

int make_socket(const Address& address) {
  const int made = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) fail("socket");
  const int on = 1;
  ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return made;
}

int accept_one(const Address& address) {
  const int listener = make_socket(address);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) fail("bind");
  if (::listen(listener, 1) != 0) fail("listen");
  const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) fail("accept");
  ::close(listener);
  return accepted;
}

// Connects to the address. Retries for 5 s while the other end is not listening yet.
int connect_to(const Address& address) {
  const auto end = Clock::now() + std::chrono::seconds(5);
  for (;;) {
    const int made = make_socket(address);
    if (::connect(made, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0) return made;
    if (errno != ECONNREFUSED || Clock::now() > end) fail("connect");
    ::close(made);
    ::usleep(1000);
  }
}

void send_word(int to) {
  const char word[kBytes] = {};
  if (::send(to, word, sizeof word, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof word)) fail("send");
}

// Returns false if the other end has disconnected.
bool receive_word(int from) {
  char word[kBytes];
  std::size_t have = 0;
  while (have < sizeof word) {
    const ssize_t got = ::recv(from, word + have, sizeof word - have, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return false;
    if (got < 0 && errno != EAGAIN) fail("recv");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return true;
}

// Measures rounds of `messages` consecutive messages each, and prints the time per message.
void measure(int peer, int rounds, int messages) {
  std::vector<double> times_us;
  for (int part = 0; part <= kParts; ++part) {
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) {
      send_word(peer);
      if (!receive_word(peer)) fail("the other end closed the connection");
    }
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (part > 0) times_us.push_back(us / rounds / messages);  // The first part is a warm-up.
  }
  std::sort(times_us.begin(), times_us.end());
  char control[16] = {};
  socklen_t length = sizeof control - 1;
  ::getsockopt(peer, IPPROTO_TCP, TCP_CONGESTION, control, &length);
  std::printf("%.3f %.3f %s\n", times_us[kParts / 2], times_us[0], control);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  const bool timed = role == "ask" || role == "join" || role == "meet";
  if (!(role == "serve" && argc == 5) && !(timed && argc == 6)) {
    std::fprintf(stderr, "usage: ping_driver serve ADDRESS PORT CORE | ask|join|meet ADDRESS PORT CORE ROUNDS\n");
    return 2;
  }
  pin(std::atoi(argv[4]));
  const Address address = resolve(argv[2], argv[3]);
  const int peer = role == "serve" || role == "join" ? accept_one(address) : connect_to(address);
  const int on = 1;
  ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (timed) measure(peer, std::atoi(argv[5]), role == "ask" ? 2 : 1);
  while (role == "serve" && receive_word(peer)) send_word(peer);
  ::close(peer);
  return 0;
}
