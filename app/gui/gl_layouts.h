// Computes layouts: small ones synchronously, large ones on a thread, rasters as textures.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "views/frame.h"

namespace shw {

class GlLayouts final : public Layouts {
 public:
  // `wake` is called on the layout thread when a layout is ready. get() and the destructor need the
  // current GL context.
  explicit GlLayouts(std::function<void()> wake);
  ~GlLayouts() override;
  const PaintedLayout* get(int slot, const TileRequest& request) override;
  // Call after each frame: layouts that it did not need are dropped.
  void end_frame();
  // Waits until all layouts are done, for screenshots.
  void wait();
  // True while a layout is being made. One that is made and not asked for needs no frames.
  bool pending() const;

 private:
  void work();
  void upload(PaintedLayout& painted);
  const PaintedLayout* show(int slot, PaintedLayout painted);

  std::function<void()> wake_;
  std::map<int, PaintedLayout> shown_;
  std::set<int> waiting_;  // slots that lack their layout in this frame
  std::map<std::uintptr_t, std::pair<int, int>> sizes_;  // sizes of textures
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, TileRequest> wanted_;  // latest request of each slot
  std::map<int, PaintedLayout> ready_;
  std::vector<PaintedLayout> layouts_to_free_;  // freed by the layout thread
  bool working_ = false, stopping_ = false;
  TileRequest current_ = {};  // written only by the layout thread
  int current_slot_ = 0;
  std::thread thread_;
};

}  // namespace shw
