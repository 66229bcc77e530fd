#include "transports/verbs/read_back.h"

#include <algorithm>
#include <utility>

namespace tutti {

Result<std::unique_ptr<ReadBack>> ReadBack::create(const std::vector<VerbsPort>& ports, const VerbsOptions& options) {
  auto made = std::make_unique<ReadBack>();
  for (const VerbsPort& port : ports) {
    QueuePair pair = TUTTI_TRY(QueuePair::create(port, options, {1, 1, 0, true}));
    auto loopback = std::make_unique<Loopback>(std::move(pair));
    TUTTI_CHECK_OK(loopback->pair.connect(loopback->pair.address()).during("reaching its own memory"));
    loopback->region =
        TUTTI_TRY(port.device->register_memory(loopback->byte.data(), loopback->byte.size(), RegionUse::remote));
    made->loopbacks_.push_back(std::move(loopback));
  }
  return made;
}

Status ReadBack::begin(std::shared_ptr<const PortMemory> memory) {
  memory_ = std::move(memory);
  for (std::size_t port = 0; port < loopbacks_.size(); ++port) {
    Loopback& loopback = *loopbacks_[port];
    ibv_sge to = {reinterpret_cast<std::uint64_t>(loopback.byte.data()), 1, loopback.region.get()->lkey};
    ibv_send_wr read = {};
    read.sg_list = &to;
    read.num_sge = 1;
    read.opcode = IBV_WR_RDMA_READ;
    read.send_flags = IBV_SEND_SIGNALED;
    read.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory_->at);
    read.wr.rdma.rkey = memory_->of_port[port]->rkey;
    TUTTI_CHECK_OK(loopback.pair.post(read));
    loopback.reads = true;
  }
  return {};
}

Result<bool> ReadBack::done() {
  if (!failure_.empty()) return remote_error(failure_);
  for (const auto& loopback : loopbacks_) {
    ibv_wc completion = {};
    if (!loopback->reads) continue;
    const int count = TUTTI_TRY(loopback->pair.poll(&completion, 1));
    if (count == 0) return false;
    if (completion.status != IBV_WC_SUCCESS) {  // Kept, because a completion is reported only once, possibly to arm().
      failure_ = loopback->pair.failure(completion).during("reading back data received in GPU memory").message();
      return remote_error(failure_);
    }
    loopback->reads = false;
  }
  memory_ = nullptr;
  return true;
}

std::vector<int> ReadBack::descriptors() const {
  std::vector<int> all;
  for (const auto& loopback : loopbacks_) all.push_back(loopback->pair.descriptor());
  return all;
}

Result<bool> ReadBack::arm() {
  for (const auto& loopback : loopbacks_) TUTTI_CHECK_OK(loopback->pair.arm());
  const bool over = TUTTI_TRY(done());
  return !over;
}

}  // namespace tutti
