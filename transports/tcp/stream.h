// The bytes of a connection, in and out, as they are or in protected records. Nothing here waits.
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
  // `calls`: of its two ends one says so.
  ByteStream(Socket socket, const Seal& seal, bool calls);

  // As sendmsg(): how many bytes were taken, which may wait here for the socket; -1 and errno.
  ssize_t send(std::span<const iovec> parts, std::size_t total);
  // As recvmsg(): 0 at the end, -1 and errno; EBADMSG: what came is not what the other end has sent.
  ssize_t receive(std::span<iovec> parts);
  // More has come than was received, of which the socket does not tell.
  bool has_more() const { return opening_ && (!readable_.empty() || begin_ < end_); }
  // Bytes that were taken and that the socket has not. flush() is false once the connection is broken: errno.
  std::size_t held() const { return outgoing_.size() - sent_; }
  // Though the last send() took a part: a record goes at a time.
  bool takes_more() const { return closing_ && held() == 0; }
  bool flush();
  // Bytes that the socket has taken, records and all, and how many of them the other end's system has not acknowledged.
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
  std::unique_ptr<Records> closing_, opening_;  // Null: bytes as they are.
  std::vector<std::byte> outgoing_, text_;      // A record on its way, and room for what goes into one.
  std::size_t sent_ = 0;
  std::vector<std::byte> incoming_;
  std::size_t begin_ = 0, end_ = 0;      // Range of received data that was not opened.
  std::span<const std::byte> readable_;  // The rest of the record that was opened last.
};

}  // namespace tutti
