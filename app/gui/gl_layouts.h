// Layouts for the programs: few tiles at once, many on a thread of their own, rasters as textures.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "views/frame.h"

namespace shw {

class GlLayouts final : public Layouts {
 public:
  // `wake` is called on the thread when a late layout is ready. Needs the GL context current in
  // get() and in the destructor.
  explicit GlLayouts(std::function<void()> wake);
  ~GlLayouts() override;
  const PaintedLayout* get(int slot, const TileRequest& request) override;
  // Waits until nothing is being laid out: pictures.
  void wait();
  bool pending() const;

 private:
  void work();
  void upload(PaintedLayout& painted);
  const PaintedLayout* show(int slot, PaintedLayout painted);

  std::function<void()> wake_;
  std::map<int, PaintedLayout> shown_;
  std::map<std::uintptr_t, std::pair<int, int>> sizes_;  // of textures
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, TileRequest> wanted_;  // the newest request of each slot
  std::map<int, PaintedLayout> ready_;
  std::vector<PaintedLayout> done_with_;  // the thread gives their memory back
  bool working_ = false, stopping_ = false;
  TileRequest current_ = {};  // while it works; written by the thread alone
  int current_slot_ = 0;
  std::thread thread_;
};

}  // namespace shw
