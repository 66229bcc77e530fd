// Byte stream of a connection, plain or in protected records. No function blocks.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "src/base/socket.h"
#include "transports/tcp/records.h"

namespace tutti {

// Protection that both ends agreed on when they joined, and their shared secret.
struct Seal {
  Protection protection = Protection::none;
  RecordKey secret{};
};

class ByteStream {
 public:
  // `calls`: true at exactly one of the two ends.
  ByteStream(Socket socket, const Seal& seal, bool calls);

  // Like sendmsg(): returns the number of bytes accepted, or -1 with errno. Accepted bytes may still wait in this
  // object.
  ssize_t send(std::span<const iovec> parts, std::size_t total);
  // Like recvmsg(): returns the number of bytes, 0 at the end of the stream, or -1 with errno. EBADMSG: the received
  // data are not what the other end has sent.
  ssize_t receive(std::span<iovec> parts);
  // Returns true if received data wait in this object, where poll(2) does not report them.
  bool has_more() const { return opening_ && (!readable_.empty() || begin_ < end_); }
  // held() returns the number of accepted bytes that the socket has not accepted. flush() passes them on; it returns
  // false with errno if the connection is broken.
  std::size_t held() const { return outgoing_.size() - sent_; }
  // Returns true if send() can accept more after a partial send(). With protection, send() accepts one record a call.
  bool takes_more() const { return closing_ && held() == 0; }
  bool flush();
  // Bytes that the socket has accepted, including record overhead, and how many of these the peer's kernel has not
  // acknowledged.
  std::uint64_t sent() const { return total_; }
  std::size_t unacknowledged() const;

  const Socket& socket() const { return socket_; }

 private:
  ssize_t counted(ssize_t sent);
  ssize_t send_sealed(std::span<const iovec> parts, std::size_t total);
  ssize_t receive_sealed(std::span<iovec> parts);
  bool open_next();

  Socket socket_;
  std::uint64_t total_ = 0;
  std::unique_ptr<Records> closing_, opening_;  // Null: bytes are not protected.
  std::vector<std::byte> outgoing_, text_;      // Record being sent, and buffer for the text of the next one.
  std::size_t sent_ = 0;
  std::vector<std::byte> incoming_;
  std::size_t begin_ = 0, end_ = 0;      // Range of received bytes that are not opened yet.
  std::span<const std::byte> readable_;  // Unread rest of the last opened record.
};

}  // namespace tutti
