#include "app/gui/offscreen.h"

#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/core.h>

#include <imgui.h>
#include <stb_image_write.h>
#include <cstring>
#include <string>

#include "core/io/output_file.h"

namespace shw {
namespace {

tl::unexpected<Error> egl_unavailable_error(const std::string& what) {
  return fail(ErrorKind::kUnsupported, "cannot draw without a window: " + what, {},
              "Install Mesa's EGL: apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri");
}

EGLDisplay surfaceless_display() {
  const char* extensions = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  if (extensions == nullptr || std::strstr(extensions, "EGL_MESA_platform_surfaceless") == nullptr)
    return EGL_NO_DISPLAY;
  auto get = reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(
      eglGetProcAddress("eglGetPlatformDisplayEXT"));
  if (get == nullptr) return EGL_NO_DISPLAY;
  return get(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
}

}  // namespace

Result<std::unique_ptr<Offscreen>> Offscreen::create(int width, int height) {
  EGLDisplay display = surfaceless_display();
  if (display == EGL_NO_DISPLAY)
    return egl_unavailable_error("EGL has no surfaceless platform here");
  if (eglInitialize(display, nullptr, nullptr) != EGL_TRUE)
    return egl_unavailable_error("EGL does not start");
  if (eglBindAPI(EGL_OPENGL_API) != EGL_TRUE)
    return egl_unavailable_error("EGL has no desktop OpenGL");
  const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT,
                           EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (eglChooseConfig(display, wanted, &config, 1, &count) != EGL_TRUE || count == 0)
    return egl_unavailable_error("EGL has no configuration for OpenGL");
  // Below 3.2 imgui cannot draw more than 65,536 vertices per window.
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                            3,
                            EGL_CONTEXT_MINOR_VERSION,
                            3,
                            EGL_CONTEXT_OPENGL_PROFILE_MASK,
                            EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                            EGL_NONE};
  EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
  if (context == EGL_NO_CONTEXT) return egl_unavailable_error("no OpenGL 3.3 core context");
  std::unique_ptr<Offscreen> screen(new Offscreen);
  screen->display_ = display;
  screen->context_ = context;
  screen->width_ = width;
  screen->height_ = height;
  if (eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) != EGL_TRUE)
    return egl_unavailable_error("the OpenGL context cannot be used");
  glGenFramebuffers(1, &screen->framebuffer_);
  glBindFramebuffer(GL_FRAMEBUFFER, screen->framebuffer_);
  glGenRenderbuffers(1, &screen->colour_);
  glBindRenderbuffer(GL_RENDERBUFFER, screen->colour_);
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, screen->colour_);
  if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
    return egl_unavailable_error(fmt::format("a picture of {} x {} is too large", width, height));
  return screen;
}

Offscreen::~Offscreen() {
  if (attached_) ImGui_ImplOpenGL3_Shutdown();
  if (context_ == nullptr) return;
  if (framebuffer_ != 0) glDeleteFramebuffers(1, &framebuffer_);
  if (colour_ != 0) glDeleteRenderbuffers(1, &colour_);
  eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  eglDestroyContext(display_, context_);
  eglTerminate(display_);
}

Status Offscreen::attach_imgui() {
  if (!ImGui_ImplOpenGL3_Init("#version 330 core"))
    return fail(ErrorKind::kUnsupported, "imgui cannot use this OpenGL");
  attached_ = true;
  ImGui::GetIO().DisplaySize = {static_cast<float>(width_), static_cast<float>(height_)};
  return {};
}

void Offscreen::new_frame() {
  ImGui_ImplOpenGL3_NewFrame();
}

void Offscreen::render() {
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
  glViewport(0, 0, width_, height_);
  glClearColor(0, 0, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

Image Offscreen::read() const {
  return read_pixels(width_, height_);
}

Image read_pixels(int width, int height) {
  Image image{width, height, {}};
  auto w = static_cast<std::size_t>(width), h = static_cast<std::size_t>(height);
  std::vector<Rgba> upside_down(w * h);
  glFinish();
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, upside_down.data());
  image.pixels.resize(w * h);
  for (std::size_t y = 0; y < h; ++y)
    std::memcpy(&image.pixels[y * w], &upside_down[(h - 1 - y) * w], w * sizeof(Rgba));
  for (Rgba& pixel : image.pixels) pixel |= 0xFF000000u;  // blending leaves holes in alpha
  return image;
}

Result<std::string> png_of(const Image& image) {
  stbi_write_png_compression_level = 6;
  std::string bytes;
  auto add = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data),
                                          static_cast<std::size_t>(size));
  };
  if (stbi_write_png_to_func(add, &bytes, image.width, image.height, 4, image.pixels.data(),
                             image.width * 4) == 0)
    return fail(ErrorKind::kIo, "cannot make the picture");
  return bytes;
}

Status write_png(const std::string& path, const Image& image) {
  SHW_TRY(const std::string bytes, png_of(image));
  return write_output_file(path, bytes);
}

}  // namespace shw
