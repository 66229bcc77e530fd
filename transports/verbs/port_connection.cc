#include "transports/verbs/port_connection.h"

#include <sys/mman.h>

#include <cstring>

namespace tutti {
namespace {

constexpr std::size_t kMemoryBytes = 2 * PortConnection::kRecords * kRecordBytes;
// Flag in a work request's id; the other bits are the index of the buffer.
constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;

}  // namespace

void PortConnection::Unmap::operator()(std::byte* memory) const { ::munmap(memory, kMemoryBytes); }

Result<std::unique_ptr<PortConnection>> PortConnection::create(const VerbsPort& port, const VerbsOptions& options) {
  // A message takes two sends: its data and its record.
  QueuePair pair = TUTTI_TRY(QueuePair::create(port, options, {2 * kRecords, kRecords, kRecordBytes}));
  std::unique_ptr<PortConnection> connection(new PortConnection(std::move(pair)));
  void* mapped = ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return system_error("map memory for RDMA device " + port.device->name());
  connection->records_.reset(static_cast<std::byte*>(mapped));
  connection->region_ = TUTTI_TRY(port.device->register_memory(mapped, kMemoryBytes, RegionUse::remote));
  for (std::uint32_t index = 0; index < kRecords; ++index) TUTTI_CHECK_OK(connection->post_receives({&index, 1}));
  return connection;
}

Status PortConnection::post_receives(std::span<const std::uint32_t> indices) {
  std::array<ibv_recv_wr, kBatch> requests = {};
  std::array<ibv_sge, kBatch> buffers = {};
  for (std::size_t i = 0; i < indices.size(); ++i) {
    buffers[i] = {reinterpret_cast<std::uint64_t>(incoming(indices[i])), kRecordBytes, region_.get()->lkey};
    requests[i].wr_id = kReceive | indices[i];
    requests[i].sg_list = &buffers[i];
    requests[i].num_sge = 1;
    requests[i].next = i + 1 < indices.size() ? &requests[i + 1] : nullptr;
  }
  return indices.empty() ? Status() : pair_.post(requests[0]);
}

Status PortConnection::send(VerbsRecord record, std::span<const std::byte> data, const Write& write) {
  record.received = reported_ = received_;
  std::byte* buffer = outgoing(sent_);
  std::memcpy(buffer, &record, sizeof record);
  if (!data.empty()) std::memcpy(buffer + sizeof record, data.data(), data.size());
  pending_sends_[sent_ % kRecords] = {record.head.lane, record.head.number, write.bytes > 0};

  const auto bytes = static_cast<std::uint32_t>(sizeof record + data.size());
  ibv_sge sge = {reinterpret_cast<std::uint64_t>(buffer), bytes, region_.get()->lkey};
  ibv_send_wr send = {};
  send.wr_id = sent_;
  send.sg_list = &sge;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  if (bytes <= pair_.inline_bytes()) send.send_flags |= IBV_SEND_INLINE;
  ++sent_;
  if (write.bytes == 0) return pair_.post(send);

  ibv_sge writing = {reinterpret_cast<std::uint64_t>(write.from), write.bytes, write.from_key};
  ibv_send_wr put = {};
  put.wr_id = send.wr_id;
  put.sg_list = &writing;
  put.num_sge = 1;
  put.opcode = IBV_WR_RDMA_WRITE;
  put.wr.rdma.remote_addr = write.to;
  put.wr.rdma.rkey = write.to_key;
  put.next = &send;
  return pair_.post(put);
}

// Uses completions that arm() found first.
Status PortConnection::poll() {
  if (waiting_ == 0) waiting_ = TUTTI_TRY(pair_.poll(polled_.data(), kBatch));
  return {};
}

// When a connection ends, all outstanding operations complete with a flush error. The first completion with another
// error has the cause.
Status PortConnection::failure() const {
  const std::span<const ibv_wc> polled(polled_.data(), static_cast<std::size_t>(waiting_));
  const ibv_wc* cause = nullptr;
  for (const ibv_wc& one : polled) {
    if (one.status == IBV_WC_SUCCESS) continue;
    if (cause == nullptr || (cause->status == IBV_WC_WR_FLUSH_ERR && one.status != IBV_WC_WR_FLUSH_ERR)) cause = &one;
  }
  return cause == nullptr ? Status() : pair_.failure(*cause);
}

Status PortConnection::advance(PortConnectionEvents& events) {
  for (;;) {
    TUTTI_CHECK_OK(poll());
    if (waiting_ == 0) break;
    std::array<std::uint32_t, kBatch> indices;
    std::size_t freed = 0;
    for (int i = 0; i < waiting_; ++i) {
      // In order: records received before the connection ended are valid.
      if (polled_[i].status != IBV_WC_SUCCESS) return failure();
      TUTTI_CHECK_OK(handle_completion(polled_[i], events));
      if ((polled_[i].wr_id & kReceive) != 0) indices[freed++] = static_cast<std::uint32_t>(polled_[i].wr_id);
    }
    waiting_ = 0;
    TUTTI_CHECK_OK(post_receives({indices.data(), freed}));
    received_ += static_cast<std::uint32_t>(freed);
  }
  // Sends a receipt if no other record is due, so that the other end can proceed.
  if (received_ - reported_ >= kRecords / 2 && room() > 0) return send({}, {}, {});
  return {};
}

Status PortConnection::handle_completion(const ibv_wc& completion, PortConnectionEvents& events) {
  if ((completion.wr_id & kReceive) == 0) {
    const PendingSend& sent = pending_sends_[completed_++ % kRecords];
    if (sent.written) events.written(sent.lane, sent.number);
    return {};
  }
  const std::byte* buffer = incoming(static_cast<std::uint32_t>(completion.wr_id));
  VerbsRecord record;
  if (completion.byte_len < sizeof record) return remote_error("received less than a record over " + describe());
  std::memcpy(&record, buffer, sizeof record);
  if (record.received - taken_ > sent_ - taken_)
    return remote_error("received credits for records that were not sent over " + describe());
  taken_ = record.received;
  const std::span data(buffer + sizeof record, completion.byte_len - sizeof record);
  return record.kind == RecordKind::receipt ? Status() : events.received(record, data);
}

Result<bool> PortConnection::arm() {
  if (waiting_ > 0) return false;
  TUTTI_CHECK_OK(pair_.arm());
  TUTTI_CHECK_OK(poll());
  return waiting_ == 0;
}

}  // namespace tutti
