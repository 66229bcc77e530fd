#include "src/bootstrap/unique_id.h"

#include <cstring>

#include "src/bootstrap/secrets.h"

namespace tutti {
namespace {

constexpr std::uint32_t kIdMagic = 0x49747554;  // "TutI"
constexpr std::uint32_t kIdVersion = 1;

std::uint64_t checksum_of(const UniqueId& id) {
  const Digest sum = digest({}, {bytes_of(id.version), bytes_of(id.address), bytes_of(id.communicator),
                                 bytes_of(id.secret), bytes_of(id.reserved)});
  std::uint64_t hash;
  std::memcpy(&hash, sum.data(), sizeof hash);
  return hash;
}

}  // namespace

Result<UniqueId> generate_unique_id(const Address& address) {
  UniqueId id;
  id.magic = kIdMagic;
  id.version = kIdVersion;
  id.address = address;
  TUTTI_CHECK_OK(fill_randomly(std::as_writable_bytes(std::span(id.communicator))));
  TUTTI_CHECK_OK(fill_randomly(std::as_writable_bytes(std::span(id.secret))));
  id.checksum = checksum_of(id);
  return id;
}

Status check(const UniqueId& id) {
  if (id.magic != kIdMagic)
    return invalid_argument(
        "invalid unique id: call tutti_get_unique_id on one rank, and copy all of its 128 bytes to the other ranks");
  if (id.version != kIdVersion) {
    return invalid_argument("the unique id has version " + std::to_string(id.version) +
                            ", this library reads version " + std::to_string(kIdVersion) +
                            ": the ranks run different versions of tutti");
  }
  if (id.checksum != checksum_of(id))
    return invalid_argument("the unique id was damaged on its way: its checksum is wrong");
  if ((id.address.family != 4 && id.address.family != 6) || id.address.port == 0) {
    return invalid_argument("the unique id holds no address");
  }
  return {};
}

}  // namespace tutti
