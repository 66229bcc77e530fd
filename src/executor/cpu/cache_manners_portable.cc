#include "src/executor/cpu/cache_manners.h"

namespace tutti {

CacheManners cache_manners() { return {}; }

}  // namespace tutti
