// Renders without a window system: EGL's surfaceless platform (Mesa), a framebuffer object, and the
// window's GL backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "views/color.h"

namespace shw {

struct Image {
  int width = 0, height = 0;
  std::vector<Rgba> pixels;
};

class Offscreen {
 public:
  // kUnsupported without EGL or its surfaceless platform; the error says what to install.
  static Result<std::unique_ptr<Offscreen>> create(int width, int height);
  ~Offscreen();
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;

  // Starts imgui's GL backend; needs an imgui context.
  Status attach_imgui();
  void new_frame();
  void render();  // draws the current frame
  Image read() const;

 private:
  Offscreen() = default;
  void *display_ = nullptr, *context_ = nullptr;
  unsigned framebuffer_ = 0, colour_ = 0;
  int width_ = 0, height_ = 0;
  bool attached_ = false;
};

// Reads the current framebuffer.
Image read_pixels(int width, int height);
Result<std::string> png_of(const Image& image);
Status write_png(const std::string& path, const Image& image);

}  // namespace shw
