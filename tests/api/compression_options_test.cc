// Compression formats and error bounds, from options and the environment.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/api/fake_backend.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

class CompressionOptions : public CommHandlesTest {};

TEST_F(CompressionOptions, RejectInvalidErrorBounds) {
  tutti_comm view = nullptr;
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  for (const double bound : {-0.01, 1.0, 7.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    options.max_relative_error = bound;
    EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument) << bound;
    EXPECT_NE(last_error().find("options.max_relative_error is "), std::string::npos) << last_error();
  }
  options.max_relative_error = -std::nan("");
  EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
  EXPECT_NE(last_error().find("options.max_relative_error is NaN: pass"), std::string::npos) << last_error();
  options.max_relative_error = 0.01;
  for (const char* compression : {"int8", "raw"}) {
    options.compression = compression;
    EXPECT_EQ(tutti_comm_with_options(comm_, &options, &view), tutti_invalid_argument);
    EXPECT_NE(last_error().find("set only one of them (options.compression and"), std::string::npos) << last_error();
  }
  EXPECT_EQ(view, nullptr);
}

// A format replaces a bound, and a bound replaces a format.
TEST_F(CompressionOptions, InheritFormatOrBound_NotBoth) {
  CommunicatorOptions environment;
  environment.compression = "int8";
  tutti_comm_options given = TUTTI_COMM_OPTIONS_DEFAULT;
  given.max_relative_error = 0.125;
  const CommunicatorOptions bounded = options_over(environment, &given).value();
  EXPECT_EQ(bounded.compression, "");
  EXPECT_EQ(bounded.max_relative_error, 0.125);
  given = TUTTI_COMM_OPTIONS_DEFAULT;
  EXPECT_EQ(options_over(bounded, &given).value().max_relative_error, 0.125);
  EXPECT_EQ(options_over(bounded, &given).value().agreement_hash, bounded.agreement_hash);
  given.compression = "raw";
  const CommunicatorOptions raw = options_over(bounded, &given).value();
  EXPECT_EQ(raw.compression, "raw");
  EXPECT_EQ(raw.max_relative_error, 0);
  EXPECT_NE(raw.agreement_hash, bounded.agreement_hash);
  environment.max_relative_error = 0.125;
  const std::string why = options_over(environment, nullptr).status().message();
  EXPECT_NE(why.find("TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR"), std::string::npos) << why;
}

}  // namespace
}  // namespace tutti::test
