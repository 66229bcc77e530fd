#include "src/base/instructions.h"

namespace tutti {

Instructions widest_instructions() { return Instructions::baseline; }

}  // namespace tutti
