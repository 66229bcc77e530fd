// Functions that the stand-in for libibverbs exports for tests, by dlsym() of tutti_verbs_stand_in.
#pragma once

#include <cstdint>

namespace tutti::test {

struct VerbsStandIn {
  // Link layer of the only port.
  void (*set_ethernet)(bool ethernet);
  // Number of queue pairs that were connected.
  int (*connected)();
  // Values of the last one. The class is -1 without a global route.
  int (*traffic_class)();
  int (*service_level)();
};

}  // namespace tutti::test
