#include "src/executor/cpu/cache_policy.h"

namespace tutti {

CachePolicy cache_policy() { return {}; }

}  // namespace tutti
