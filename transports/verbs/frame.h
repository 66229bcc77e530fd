// Data that two ends of an RDMA connection exchange. Fixed-width plain data. Both hosts have the same byte order,
// as over TCP.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/carrier.h"
#include "transports/verbs/device.h"

namespace tutti {

inline constexpr std::uint32_t kVerbsVersion = 3;

// One end of a queue pair.
struct QueuePairAddress {
  std::uint32_t queue_pair = 0;
  std::uint32_t first_packet = 0;  // Initial packet sequence number of this end.
  std::array<std::uint8_t, 16> gid = {};
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;
  std::uint8_t ethernet = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(QueuePairAddress) == 32);

inline constexpr std::size_t kMaxQueuePairs = 4;  // Per port.

// Ports are paired in this order. Surplus ports and queue pairs of one end are not used.
struct VerbsAddress {
  std::uint32_t version = kVerbsVersion;
  std::uint16_t port_count = 0;
  std::uint16_t pairs_per_port = 1;
  std::array<QueuePairAddress, kMaxPorts * kMaxQueuePairs> queue_pairs;  // [pair * port_count + port]
};
static_assert(sizeof(VerbsAddress) <= kMaxCarrierBytes);

// Location of a lane's slots, for its writer.
struct VerbsLanding {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::array<std::uint32_t, kMaxPorts> keys = {};  // By port.
  std::uint32_t max_eager = 0;                     // Maximum bytes that the reader accepts within a record.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(VerbsLanding) == 56);

enum class RecordKind : std::uint16_t {
  message = 1,  // This port has written its share of the data into the slot.
  eager = 2,    // The data follow the record.
  credit = 3,   // head.number messages of the receiver's lane have been consumed.
  receipt = 4,  // Only `received` is valid.
};

// A record, sent in order on a queue pair into a buffer that the other end has posted.
struct VerbsRecord {
  RecordKind kind = RecordKind::receipt;
  std::uint16_t parts = 1;     // Number of ports that carry data of this message; each sends a record.
  std::uint32_t received = 0;  // Records that the sender has received on this queue pair, modulo 2^32.
  MessageHead head;
};
static_assert(sizeof(VerbsRecord) == 32);

inline constexpr std::size_t kRecordBytes = 256;  // Including data.
inline constexpr std::size_t kEagerBytes = kRecordBytes - sizeof(VerbsRecord);

}  // namespace tutti
