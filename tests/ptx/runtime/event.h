// Events: marks in streams, or in captures.
#pragma once

#include "tests/ptx/runtime/stream.h"

namespace tutti::cudart {

struct Event {
  int device = 0;
  bool timing = true;
  std::shared_ptr<EventMark> mark = std::make_shared<EventMark>();
  std::shared_ptr<Capture> capture;  // Capture in which the event was recorded last.
  std::vector<GraphNode*> captured;  // Nodes that precede the mark in the capture.
};

}  // namespace tutti::cudart
