// Driver for Gloo over TCP, its only transport even within a host.
//   gloo_driver DIRECTORY RANK RANKS CORE plain|busy [ADDRESS]
// ADDRESS: address at which others reach this rank (default: localhost). busy: Gloo's older algorithms with synchronous
// pairs that poll; they are faster for small calls, and are used for all-reduce up to 16 MiB only.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "perf/peers/driver.h"

namespace {

constexpr std::size_t kRingUpTo = 8192;  // Elements above which halving and doubling is faster.

std::shared_ptr<gloo::rendezvous::Context> context;
std::unique_ptr<gloo::Algorithm> busy_barrier;  // Null unless busy.
std::unique_ptr<gloo::Algorithm> busy_all_reduce;
driver_call busy_call = {};

void run_busy(const driver_call& call) {
  if (busy_all_reduce == nullptr || busy_call.count != call.count || busy_call.recv != call.recv) {
    const std::vector<float*> buffers = {call.recv};
    const int count = static_cast<int>(call.count);
    if (call.count <= kRingUpTo) {
      busy_all_reduce = std::make_unique<gloo::AllreduceRing<float>>(context, buffers, count);
    } else {
      busy_all_reduce = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, buffers, count);
    }
    busy_call = call;
  }
  busy_all_reduce->run();
}

void run_plain(const driver_call& call) {
  const auto ranks = static_cast<std::size_t>(context->size);
  switch (call.collective) {
    case all_reduce: {
      gloo::AllreduceOptions options(context);
      options.setOutput(call.recv, call.count);
      options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
      return gloo::allreduce(options);
    }
    case all_gather: {
      gloo::AllgatherOptions options(context);
      options.setInput(call.send, call.count);
      options.setOutput(call.recv, call.count * ranks);
      return gloo::allgather(options);
    }
    case broadcast: {
      gloo::BroadcastOptions options(context);
      options.setRoot(0);
      options.setOutput(call.recv, call.count);
      return gloo::broadcast(options);
    }
    case all_to_all: {
      gloo::AlltoallOptions options(context);
      options.setInput(call.send, call.count * ranks);
      options.setOutput(call.recv, call.count * ranks);
      return gloo::alltoall(options);
    }
    default: driver_fail("gloo_driver: Gloo does not support this collective out of place");
  }
}

void run(const driver_call* call) {
  if (busy_barrier != nullptr) return run_busy(*call);
  run_plain(*call);
}

void barrier() {
  if (busy_barrier != nullptr) return busy_barrier->run();
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

void connect(const driver& self, bool busy, const char* own_address) {
  gloo::transport::tcp::attr address;
  address.hostname = own_address;
  context = std::make_shared<gloo::rendezvous::Context>(self.rank, self.ranks);
  gloo::rendezvous::FileStore store(std::string(self.directory));
  auto device = gloo::transport::tcp::CreateDevice(address);
  context->connectFullMesh(store, device);
  if (!busy) return;
  for (int peer = 0; peer < self.ranks; ++peer) {
    if (peer != self.rank) context->getPair(peer)->setSync(true, true);
  }
  busy_barrier = std::make_unique<gloo::BarrierAllToOne>(context);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) driver_fail("usage: gloo_driver DIRECTORY RANK RANKS CORE plain|busy [ADDRESS]");
  driver self = {};
  self.directory = argv[1];
  self.rank = std::atoi(argv[2]);
  self.ranks = std::atoi(argv[3]);
  self.core = std::atoi(argv[4]);
  self.run = run;
  self.barrier = barrier;
  // With a spinning barrier, a call of 64 KiB would take a tick of the scheduler, 4 ms instead of 0.2 ms.
  self.sleeps = std::strcmp(argv[5], "busy") != 0;
  driver_pin(self.core);
  try {
    connect(self, self.sleeps == 0, argc == 7 ? argv[6] : "localhost");
    return driver_serve(&self);
  } catch (const std::exception& error) {
    driver_fail("gloo_driver: %s", error.what());
  }
}
