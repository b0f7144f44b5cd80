#include "app/gui/window.h"

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>
#include <algorithm>
#include <cstdlib>

#include "app/gui/export_view.h"
#include "app/gui/fonts.h"
#include "app/gui/frame_pacer.h"
#include "app/gui/imgui_setup.h"
#include "app/gui/input_queue.h"
#include "app/gui/key_codes.h"
#include "app/gui/offscreen.h"
#include "app/gui/tabs.h"
#include "core/verbs/recent.h"
#include "core/verbs/user_files.h"
#include "views/shown_text.h"

namespace shw {
namespace {

struct Window {
  GLFWwindow* handle = nullptr;
  InputQueue input;
  std::vector<std::string> dropped;
  std::string title = "Shardwright";
  bool scale_changed = false;
  bool close_wanted = false;
  FramePacer pace;
};

Window& of(GLFWwindow* handle) {
  return *static_cast<Window*>(glfwGetWindowUserPointer(handle));
}

void on_key(GLFWwindow* handle, int key, int scancode, int action, int mods) {
  Window& window = of(handle);
  window.pace.wake();
  InputEvent event{key, scancode, action, mods, 0, {}};
  if (action != GLFW_RELEASE)
    event.pressed = {key_of(key, glfwGetKeyName(key, scancode)), (mods & GLFW_MOD_CONTROL) != 0,
                     (mods & GLFW_MOD_SHIFT) != 0, (mods & GLFW_MOD_ALT) != 0};
  window.input.add(event);
}

void listen(Window& window) {
  GLFWwindow* handle = window.handle;
  glfwSetWindowUserPointer(handle, &window);
  glfwSetKeyCallback(handle, on_key);
  glfwSetCharCallback(handle, [](GLFWwindow* w, unsigned character) {
    of(w).pace.wake();
    InputEvent event;
    event.character = character;
    of(w).input.add(event);
  });
  glfwSetMouseButtonCallback(handle, [](GLFWwindow* w, int button, int action, int mods) {
    of(w).pace.wake();
    InputEvent event;
    event.action = action;
    event.mods = mods;
    event.button = button;
    of(w).input.add(event);
  });
  glfwSetScrollCallback(handle, [](GLFWwindow* w, double x, double y) {
    of(w).pace.wake();
    ImGui_ImplGlfw_ScrollCallback(w, x, y);
  });
  glfwSetCursorPosCallback(handle,
                           [](GLFWwindow* w, [[maybe_unused]] double x, [[maybe_unused]] double y) {
                             of(w).pace.wake();
#if IMGUI_VERSION_NUM >= 18700  // before that imgui asks GLFW where the mouse is
                             ImGui_ImplGlfw_CursorPosCallback(w, x, y);
#endif
                           });
  glfwSetCursorEnterCallback(handle, [](GLFWwindow* w, int entered) {
    of(w).pace.wake();
    ImGui_ImplGlfw_CursorEnterCallback(w, entered);
  });
  glfwSetWindowRefreshCallback(handle, [](GLFWwindow* w) { of(w).pace.wake(); });
  glfwSetWindowFocusCallback(handle, [](GLFWwindow* w, int focused) {
    of(w).pace.wake();
    ImGui_ImplGlfw_WindowFocusCallback(w, focused);
  });
  glfwSetWindowContentScaleCallback(
      handle, [](GLFWwindow* w, float, float) { of(w).scale_changed = true; });
  glfwSetWindowCloseCallback(handle, [](GLFWwindow* w) {
    // The desktop decides about closing, because it may have to ask first.
    glfwSetWindowShouldClose(w, GLFW_FALSE);
    of(w).close_wanted = true;
    of(w).pace.wake();
  });
  glfwSetDropCallback(handle, [](GLFWwindow* w, int count, const char** paths) {
    for (int i = 0; i < count; ++i) of(w).dropped.emplace_back(paths[i]);
    of(w).pace.wake();
  });
}

// imgui 1.86 sees the keyboard as it is at the start of a frame: a press and a release between two
// frames would be lost, so one of them waits for the next frame. From 1.87 on imgui sees to that.
constexpr bool kKeysMayBeLost = IMGUI_VERSION_NUM < 18700;

std::vector<KeyPress> feed_input(Window& window) {
  InputQueue::Target target{};
  target.reads_encoded_text = ImGui::GetIO().WantTextInput;
  target.one_change_per_key = kKeysMayBeLost;
  target.key = [&window](const InputEvent& event) {
    // Tab goes through the controls in reading order (views/tab_order.h); imgui 1.86 would go from
    // text input to text input.
    if (event.key == GLFW_KEY_TAB) return;
    // Arrow and page keys belong to the list and the map: imgui would move its own focus away from
    // them.
    const bool walks = event.key >= GLFW_KEY_RIGHT && event.key <= GLFW_KEY_END;
    const bool menu = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup);
    if (walks && event.action != GLFW_RELEASE && !menu && !ImGui::GetIO().WantTextInput) return;
    ImGui_ImplGlfw_KeyCallback(window.handle, event.key, event.scancode, event.action, event.mods);
  };
  target.character = [&window](unsigned character) {
    ImGui_ImplGlfw_CharCallback(window.handle, character);
  };
  target.mouse = [&window](const InputEvent& event) {
    ImGui_ImplGlfw_MouseButtonCallback(window.handle, event.button, event.action, event.mods);
  };
  std::vector<KeyPress> keys = window.input.take(target);
  if (!window.input.empty()) window.pace.wake();
  return keys;
}

float display_scale(const GuiOptions& options, GLFWwindow* handle) {
  if (options.scale > 0) return options.scale;
  float x = 1, y = 1;
  glfwGetWindowContentScale(handle, &x, &y);
  return x >= 0.5f && x <= 8 ? x : 1;
}

tl::unexpected<Error> window_unavailable_error() {
  const char* why = nullptr;
  glfwGetError(&why);
  return fail(
      ErrorKind::kUnsupported,
      std::string("no window can be opened: ") + (why ? why : "the display does not answer"), {},
      "Without a display: shardwright-gui --screenshot out.png CHECKPOINT draws the same picture, "
      "shardwright check CHECKPOINT prints the findings. Over ssh: ssh -X.");
}

void loop(Window& window, Tabs& tabs, const GuiOptions& options) {
  Fonts fonts;
  Look look;
  ViewExport exported;
  float monitor = display_scale(options, window.handle);
  while (!tabs.has_left()) {
    FramePacer::Sleep sleep = window.pace.next(tabs.busy());
    if (sleep == FramePacer::Sleep::kNot)
      glfwPollEvents();
    else if (sleep == FramePacer::Sleep::kMoment)
      glfwWaitEventsTimeout(1.0 / 30);
    else
      glfwWaitEvents();
    window.pace.slept(sleep);
    window.pace.drew();
    if (window.scale_changed) monitor = display_scale(options, window.handle);
    window.scale_changed = false;
    const verbs::UiSettings& settings = tabs.shown().desk().panel_state.settings;
    change_style({settings.theme, total_scale(monitor, settings.scale)}, look, fonts);
    if (window.close_wanted) tabs.leave();
    window.close_wanted = false;
    if (!window.dropped.empty()) tabs.shown().drop(std::move(window.dropped.back()));
    window.dropped.clear();
    const std::vector<KeyPress> keys = feed_input(window);
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    ImGui::NewFrame();
    exported.begin(tabs.shown());
    tabs.draw(fonts, look.scale, glfwGetTime(), keys, false);
    if (has_missing_letters()) window.pace.wake();
    if (tabs.shown().title() != window.title) {
      window.title = tabs.shown().title();
      glfwSetWindowTitle(window.handle, window.title.c_str());
    }
    ImGui::Render();
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    const auto pixels = [&] {
      int width = 0, height = 0;
      glfwGetFramebufferSize(window.handle, &width, &height);
      return read_pixels(width, height);
    };
    if (exported.finish(tabs.shown(), pixels)) window.pace.wake();
    glfwSwapBuffers(window.handle);
  }
}

}  // namespace

Status run_window(const GuiOptions& options) {
  if (glfwInit() != GLFW_TRUE) return window_unavailable_error();
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);  // below 3.2 imgui draws 65,536 vertices at most
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  Window window;
  window.handle = glfwCreateWindow(options.width, options.height, "Shardwright", nullptr, nullptr);
  if (window.handle == nullptr) {
    auto error = window_unavailable_error();
    glfwTerminate();
    return error;
  }
  glfwMakeContextCurrent(window.handle);
  glfwSwapInterval(1);
  create_imgui(dark_theme(), display_scale(options, window.handle), false);
  listen(window);
  ImGui_ImplGlfw_InitForOpenGL(window.handle, false);
  ImGui_ImplOpenGL3_Init("#version 330 core");
  Status recorded;
  {
    const std::string recent =
        verbs::recent_file(std::getenv("XDG_STATE_HOME"), std::getenv("HOME"));
    Tabs tabs([&] {
      auto bench = std::make_unique<Workbench>([] { glfwPostEmptyEvent(); });
      bench->set_gpu_detection(options.gpus);
      if (!recent.empty()) bench->set_recent_places_file(recent);
      bench->watch_disk();
      return bench;
    });
    if (!options.record.empty()) recorded = tabs.record_in(options.record);
    tabs.autosave_settings_to(
        verbs::ui_settings_file(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME")));
    PanelsState& panel_state = tabs.shown().desk().panel_state;
    panel_state.cache_folder =
        verbs::user_file_path(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"), ".cache", "gui");
    if (options.theme) panel_state.settings.theme = *options.theme;
    tabs.open_all(options);
    if (recorded) loop(window, tabs, options);
  }
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  ImGui::DestroyContext();
  glfwDestroyWindow(window.handle);
  glfwTerminate();
  return recorded;
}

}  // namespace shw
