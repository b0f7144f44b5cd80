// Layouts for the programs: few tiles at once, many on a thread of their own, rasters as textures.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

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

  std::function<void()> wake_;
  std::map<int, PaintedLayout> shown_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, TileRequest> wanted_;  // the newest request of each slot
  std::map<int, PaintedLayout> ready_;
  bool working_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace shw
