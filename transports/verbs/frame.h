// Data that two ends of an RDMA connection exchange. Fixed-width plain data. Both hosts have the same byte order,
// as over TCP.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/carrier.h"
#include "transports/verbs/device.h"

namespace tutti {

inline constexpr std::uint32_t kVerbsVersion = 2;

// One end of a queue pair.
struct RailAddress {
  std::uint32_t queue_pair = 0;
  std::uint32_t first_packet = 0;  // Number of the first that it sends.
  std::array<std::uint8_t, 16> gid = {};
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;
  std::uint8_t ethernet = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RailAddress) == 32);

// Rails are paired in this order: what one end has more of is not used.
struct VerbsAddress {
  std::uint32_t version = kVerbsVersion;
  std::uint32_t rails = 0;
  std::array<RailAddress, kMaxPorts> rail;
};
static_assert(sizeof(VerbsAddress) <= kMaxCarrierBytes);

// Where the slots of a lane are, for its writer.
struct VerbsLanding {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::array<std::uint32_t, kMaxPorts> keys = {};  // By rail.
  std::uint32_t max_eager = 0;                     // Bytes that the reader takes with a record.
  std::uint32_t reserved = 0;
};
static_assert(sizeof(VerbsLanding) == 56);

enum class RecordKind : std::uint16_t {
  message = 1,  // This rail has written its part of the message's data into the slot.
  eager = 2,    // Its data follow.
  credit = 3,   // So many messages of the receiver's lane have been taken: head.number.
  receipt = 4,  // Nothing but `received`.
};

// Record that is sent in order on a rail, into memory that the other end has posted.
struct VerbsRecord {
  RecordKind kind = RecordKind::receipt;
  std::uint16_t parts = 1;     // Rails that carry data of this message. Each has a record of it.
  std::uint32_t received = 0;  // Records that the sender has had from this rail so far, modulo 2^32.
  MessageHead head;
};
static_assert(sizeof(VerbsRecord) == 32);

inline constexpr std::size_t kRecordBytes = 256;  // With data.
inline constexpr std::size_t kEagerBytes = kRecordBytes - sizeof(VerbsRecord);

}  // namespace tutti
