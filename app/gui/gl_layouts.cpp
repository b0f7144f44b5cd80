#include "app/gui/gl_layouts.h"

#include <GL/gl.h>

#include "views/layout_cache.h"

namespace shw {
namespace {

// 20,000 tiles take 0.3 ms to lay out: less than a frame that shows the old ones.
constexpr std::uint32_t kAtOnce = 20'000;

}  // namespace

GlLayouts::GlLayouts(std::function<void()> wake)
    : wake_(std::move(wake)), thread_([this] { work(); }) {}

GlLayouts::~GlLayouts() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (auto& [slot, painted] : shown_) {
    auto texture = static_cast<GLuint>(painted.texture);
    if (texture != 0) glDeleteTextures(1, &texture);
  }
}

void GlLayouts::upload(PaintedLayout& painted) {
  auto texture = static_cast<GLuint>(painted.texture);
  if (painted.pixels.empty()) return;
  GLint bound = 0;
  glGetIntegerv(GL_TEXTURE_BINDING_2D, &bound);
  if (texture == 0) glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, painted.layout.view.width, painted.layout.view.height, 0,
               GL_RGBA, GL_UNSIGNED_BYTE, painted.pixels.data());
  glBindTexture(GL_TEXTURE_2D, static_cast<GLuint>(bound));
  painted.texture = texture;
}

const PaintedLayout* GlLayouts::get(int slot, const TileRequest& request) {
  auto show = [&](PaintedLayout painted) {
    painted.texture = shown_[slot].texture;
    upload(painted);
    return &(shown_[slot] = std::move(painted));
  };
  auto found = shown_.find(slot);
  if (found != shown_.end() && same_request(found->second.request, request)) return &found->second;
  if (request.tiles->size() <= kAtOnce) return show(paint_layout(request));
  {
    std::lock_guard lock(mutex_);
    auto ready = ready_.find(slot);
    if (ready != ready_.end()) {
      PaintedLayout painted = std::move(ready->second);
      ready_.erase(ready);
      bool right = same_request(painted.request, request);
      found = shown_
                  .insert_or_assign(slot,
                                    [&] {
                                      painted.texture =
                                          found != shown_.end() ? found->second.texture : 0;
                                      upload(painted);
                                      return std::move(painted);
                                    }())
                  .first;
      if (right) {
        wanted_.erase(slot);
        return &found->second;
      }
    }
    wanted_.insert_or_assign(slot, request);
  }
  changed_.notify_all();
  return found != shown_.end() ? &found->second : nullptr;
}

void GlLayouts::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return wanted_.empty() && !working_; });
}

bool GlLayouts::pending() const {
  std::lock_guard lock(mutex_);
  return !wanted_.empty() || working_ || !ready_.empty();
}

void GlLayouts::work() {
  while (true) {
    int slot = 0;
    TileRequest request;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !wanted_.empty(); });
      if (stopping_) return;
      slot = wanted_.begin()->first;
      request = std::move(wanted_.begin()->second);
      wanted_.erase(wanted_.begin());
      working_ = true;
    }
    PaintedLayout painted = paint_layout(request);
    {
      std::lock_guard lock(mutex_);
      ready_.insert_or_assign(slot, std::move(painted));
      working_ = false;
    }
    changed_.notify_all();
    if (wake_) wake_();
  }
}

}  // namespace shw
