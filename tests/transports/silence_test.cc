// When a peer's host counts as unreachable.
#include "transports/tcp/silence.h"

#include <gtest/gtest.h>

#include <functional>

namespace tutti::test {
namespace {

constexpr std::int64_t kStepNs = 200'000'000;

// Feeds a sample every 200 ms for `seconds`. Returns the time of the first report in seconds, or -1.
double first_report(double seconds, const std::function<TcpSample(int)>& sample_at) {
  SilenceDetector detector;
  for (int step = 0; step * 0.2 < seconds; ++step) {
    TcpSample sample = sample_at(step);
    sample.now_ns = step * kStepNs;
    if (detector.update(sample) > 0) return step * 0.2;
  }
  return -1;
}

TEST(SilenceDetector, ReportsUnacknowledgedData_WhenIncomingSegmentsResetProbeCounter) {
  const double at = first_report(10, [](int step) {
    return TcpSample{.acknowledged = 5,
                     .unacknowledged = 40,
                     .window = 60'000,
                     .probes = step % 4 == 1 ? std::uint8_t{1} : std::uint8_t{0}};
  });
  EXPECT_GE(at, 3.5);
  EXPECT_LE(at, 4.1);
}

TEST(SilenceDetector, ReportsUnacknowledgedData_WhenRetransmissionsStayUnanswered) {
  const double at = first_report(10, [](int step) {
    return TcpSample{
        .unacknowledged = 40, .in_flight = 1, .window = 60'000, .retransmits = static_cast<std::uint8_t>(step / 5)};
  });
  EXPECT_GE(at, 3.5);
  EXPECT_LE(at, 4.1);
}

TEST(SilenceDetector, ReportsNothing_WhenWindowIsClosedAndProbesAreAnswered) {
  EXPECT_EQ(first_report(60,
                         [](int step) {
                           return TcpSample{
                               .unacknowledged = 4000, .window = 0, .probes = static_cast<std::uint8_t>(step % 2)};
                         }),
            -1);
}

TEST(SilenceDetector, ReportsClosedWindow_WhenProbesStayUnanswered) {
  const double at = first_report(10, [](int step) {
    return TcpSample{.unacknowledged = 4000, .window = 0, .probes = static_cast<std::uint8_t>(1 + step / 5)};
  });
  EXPECT_GE(at, 3.5);
  EXPECT_LE(at, 4.1);
}

TEST(SilenceDetector, ReportsNothing_WhenDataAreAcknowledgedEveryThreeSeconds) {
  EXPECT_EQ(first_report(60,
                         [](int step) {
                           return TcpSample{.acknowledged = static_cast<std::uint64_t>(step / 15),
                                            .unacknowledged = 40,
                                            .in_flight = 1,
                                            .window = 60'000,
                                            .retransmits = 3};
                         }),
            -1);
}

TEST(SilenceDetector, ReportsNothing_WhenNothingIsUnacknowledgedOrTcpHasNotTriedAgain) {
  EXPECT_EQ(first_report(60, [](int) { return TcpSample{.window = 60'000, .probes = 3}; }), -1);
  EXPECT_EQ(first_report(60, [](int) { return TcpSample{.unacknowledged = 40, .window = 60'000, .retransmits = 1}; }),
            -1);
}

}  // namespace
}  // namespace tutti::test
