// The work of a stream.
#include <gtest/gtest.h>

#include <memory>

#include "src/communicator/call/stream.h"

namespace tutti::test {
namespace {

// The last owner of a communicator may be the work of a stream, and its end takes long or uses the stream.
TEST(StreamWork, EndsObjectsThatItOwns_WithoutLockOfStream) {
  struct Last {
    const Stream& stream;
    ~Last() { (void)stream.idle(); }
  };
  const std::unique_ptr<Stream> stream = Stream::create().value();
  stream->enqueue([last = std::shared_ptr<Last>(new Last{*stream})] { return Status(); });
  EXPECT_TRUE(stream->synchronize().ok());
}

}  // namespace
}  // namespace tutti::test
