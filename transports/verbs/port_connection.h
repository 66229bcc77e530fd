// One of the parallel paths between two ranks: a queue pair of a port with its outstanding sends and receive buffers.
//
// Each end has kRecords receive buffers and reports how many records it has received, so the other end never sends
// without a free buffer. The data of a message are written into its slot before the record that announces them; the
// device keeps this order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"
#include "transports/verbs/frame.h"
#include "transports/verbs/queue_pair.h"

namespace tutti {

class PortConnectionEvents {
 public:
  // A record arrived. `data`: data of an eager message, valid during the call.
  virtual Status received(const VerbsRecord& record, std::span<const std::byte> data) = 0;
  // A written message has arrived, so its slot is free again.
  virtual void written(std::uint32_t lane, std::uint64_t number) = 0;

 protected:
  ~PortConnectionEvents() = default;
};

class PortConnection {
 public:
  // Share of a message that is written before its record. bytes == 0: none.
  struct Write {
    const std::byte* from = nullptr;
    std::uint32_t from_key = 0;
    std::uint32_t to_key = 0;
    std::uint64_t to = 0;
    std::uint32_t bytes = 0;
  };
  static constexpr std::uint32_t kRecords = 128;

  static Result<std::unique_ptr<PortConnection>> create(const VerbsPort& port, const VerbsOptions& options);

  const VerbsPort& port() const { return port_; }
  QueuePairAddress address() const { return pair_.address(); }
  Status connect(const QueuePairAddress& other) { return pair_.connect(other); }
  std::string describe() const { return pair_.describe(); }
  int descriptor() const { return pair_.descriptor(); }

  // True if a record of a message or a credit can be sent.
  bool has_room() const { return room() > kForReceipts; }
  // Sends a record. `data`: data of an eager message.
  Status send(VerbsRecord record, std::span<const std::byte> data, const Write& write);
  // True if the other end has received everything.
  bool acknowledged() const { return completed_ == sent_; }

  // Processes completions and received records.
  Status advance(PortConnectionEvents& events);
  // Arms the descriptor. Returns false if advance() has work already.
  Result<bool> arm();

 private:
  // Reserved, since two ends without free buffers would wait for each other.
  static constexpr std::uint32_t kForReceipts = 4;
  static constexpr int kBatch = 16;

  // Message to which the completion of a send belongs.
  struct PendingSend {
    std::uint32_t lane = 0;
    std::uint64_t number = 0;
    bool written = false;  // False: no message.
  };

  explicit PortConnection(QueuePair pair) : port_(pair.port()), pair_(std::move(pair)) {}
  std::byte* outgoing(std::uint32_t record) const { return records_.get() + record % kRecords * kRecordBytes; }
  std::byte* incoming(std::uint32_t index) const { return records_.get() + (kRecords + index) * kRecordBytes; }
  std::uint32_t room() const { return kRecords - std::max(sent_ - completed_, sent_ - taken_); }
  Status post_receives(std::span<const std::uint32_t> indices);
  Status poll();
  Status handle_completion(const ibv_wc& completion, PortConnectionEvents& events);
  Status failure() const;

  struct Unmap {
    void operator()(std::byte* memory) const;
  };
  VerbsPort port_;                             // Its device must outlive memory registered with it.
  std::unique_ptr<std::byte, Unmap> records_;  // Outgoing records, then incoming ones.
  MemoryRegion region_;
  QueuePair pair_;

  // Counts of records, modulo 2^32.
  std::uint32_t sent_ = 0, completed_ = 0;
  std::uint32_t taken_ = 0;                    // Records sent that the other end has taken, as far as it has reported.
  std::uint32_t received_ = 0, reported_ = 0;  // Records received from the other end, and the number reported to it.
  std::array<PendingSend, kRecords> pending_sends_;
  std::array<ibv_wc, kBatch> polled_;
  int waiting_ = 0;  // Completions that were polled but not processed.
};

}  // namespace tutti
