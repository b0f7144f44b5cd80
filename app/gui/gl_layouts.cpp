#include "app/gui/gl_layouts.h"

#include <GL/gl.h>

#include <iterator>

#include "core/base/threads.h"
#include "views/layout_cache.h"

namespace shw {
namespace {

// 20,000 tiles take 0.3 ms to lay out: less than a frame that shows the old ones.
constexpr std::uint32_t kAtOnce = 20'000;

}  // namespace

GlLayouts::GlLayouts(std::function<void()> wake) : wake_(std::move(wake)) {
  start_thread(thread_, [this] { work(); });
}

GlLayouts::~GlLayouts() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
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
  const TileView& view = painted.layout.view;
  auto [size, is_new] = sizes_.try_emplace(texture, 0, 0);
  if (size->second == std::pair(view.width, view.height)) {
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, view.width, view.height, GL_RGBA, GL_UNSIGNED_BYTE,
                    painted.pixels.data());
  } else {
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, view.width, view.height, 0, GL_RGBA, GL_UNSIGNED_BYTE,
                 painted.pixels.data());
    size->second = {view.width, view.height};
  }
  glBindTexture(GL_TEXTURE_2D, static_cast<GLuint>(bound));
  painted.texture = texture;
}

const PaintedLayout* GlLayouts::show(int slot, PaintedLayout painted) {
  PaintedLayout& shown = shown_[slot];
  painted.texture = shown.texture;
  upload(painted);
  std::swap(shown, painted);
  painted.pixels.swap(shown.pixels);
  {
    // Freeing the memory of a million tiles takes a millisecond, so the layout thread does it.
    std::lock_guard lock(mutex_);
    layouts_to_free_.push_back(std::move(painted));
  }
  changed_.notify_all();
  return &shown;
}

const PaintedLayout* GlLayouts::get(int slot, const TileRequest& request) {
  auto found = shown_.find(slot);
  if (found != shown_.end() && same_request(found->second.request, request)) return &found->second;
  if (request.tiles->size() <= kAtOnce || !thread_.joinable())
    return show(slot, paint_layout(request));
  waiting_.insert(slot);
  std::optional<PaintedLayout> ready;
  {
    std::lock_guard lock(mutex_);
    if (auto made = ready_.find(slot); made != ready_.end()) {
      ready = std::move(made->second);
      ready_.erase(made);
    }
    bool is_right = ready && same_request(ready->request, request);
    bool is_coming = working_ && current_slot_ == slot && same_request(current_, request);
    if (is_right || is_coming)
      wanted_.erase(slot);
    else
      wanted_.insert_or_assign(slot, request);
  }
  changed_.notify_all();
  if (ready) return show(slot, std::move(*ready));
  return found != shown_.end() ? &found->second : nullptr;
}

void GlLayouts::end_frame() {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(wanted_, [&](const auto& each) { return !waiting_.contains(each.first); });
    for (auto made = ready_.begin(); made != ready_.end();) {
      const bool is_needed = waiting_.contains(made->first);
      if (!is_needed) layouts_to_free_.push_back(std::move(made->second));
      made = is_needed ? std::next(made) : ready_.erase(made);
    }
  }
  waiting_.clear();
  changed_.notify_all();
}

void GlLayouts::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return wanted_.empty() && !working_; });
}

bool GlLayouts::pending() const {
  std::lock_guard lock(mutex_);
  return !wanted_.empty() || working_;
}

void GlLayouts::work() {
  while (true) {
    std::vector<PaintedLayout> given_back;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return stopping_ || !wanted_.empty() || !layouts_to_free_.empty(); });
      if (stopping_) return;
      given_back.swap(layouts_to_free_);
      if (wanted_.empty()) continue;
      current_slot_ = wanted_.begin()->first;
      current_ = std::move(wanted_.begin()->second);
      wanted_.erase(wanted_.begin());
      working_ = true;
    }
    given_back.clear();
    PaintedLayout painted = paint_layout(current_);
    {
      std::lock_guard lock(mutex_);
      ready_.insert_or_assign(current_slot_, std::move(painted));
      working_ = false;
      current_ = {};
    }
    changed_.notify_all();
    if (wake_) wake_();
  }
}

}  // namespace shw
