// Synchronous layouts, cached until their inputs change: for tests, screenshots and small
// tensors.
#pragma once

#include <map>

#include "views/frame.h"

namespace shw {

bool same_request(const TileRequest& a, const TileRequest& b);
PaintedLayout paint_layout(const TileRequest& request);

class LayoutCache final : public Layouts {
 public:
  const PaintedLayout* get(int slot, const TileRequest& request) override;

 private:
  std::map<int, PaintedLayout> slots_;
};

}  // namespace shw
