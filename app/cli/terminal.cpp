#include "app/cli/terminal.h"

#include <fmt/core.h>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/progress_line.h"
#include "core/base/threads.h"
#include "core/io/remote/remote_traffic.h"
#include "core/report/report.h"
#include "core/report/visible_controls.h"

namespace shw::cli {
namespace {

bool set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::strcmp(term, "dumb") == 0;
}

// NO_COLOR overrides CLICOLOR_FORCE, --color overrides both (no-color.org, bixense.com/clicolors).
bool wants_colour(const std::string& choice, bool is_terminal) {
  if (choice != "auto") return choice == "always";
  if (set("NO_COLOR")) return false;
  if (set("CLICOLOR_FORCE")) return true;
  return is_terminal && !is_dumb();
}

// 24-bit colour support, as terminals announce it (github.com/termstandard/colors).
bool shows_24_bit_colours() {
  const char* said = std::getenv("COLORTERM");
  return said != nullptr &&
         (std::strcmp(said, "truecolor") == 0 || std::strcmp(said, "24bit") == 0);
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!set(name)) continue;
    std::string_view value = std::getenv(name);
    return value.find("UTF-8") != value.npos || value.find("utf8") != value.npos ||
           value.find("UTF8") != value.npos || value.find("utf-8") != value.npos;
  }
  return false;
}

int columns_of(int descriptor) {
  if (set("COLUMNS")) {
    if (int columns = std::atoi(std::getenv("COLUMNS")); columns >= 20) return columns;
  }
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 100;
}

// Returns the errno of a failed write, or 0. Waits if another program set the shared pipe or
// terminal to non-blocking, as launchers and Node.js do.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd room{descriptor, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Adds the number of transferred bytes to the answer of a remote checkpoint.
void insert_transferred_bytes_json(std::string& answer) {
  const std::size_t close = answer.rfind('}');
  if (!answer.starts_with('{') || close == answer.npos || close == 0) return;
  const std::size_t last = answer.find_last_not_of(" \n", close - 1);
  const bool is_indented = answer.find('\n') < close;
  answer.resize(last + 1);
  answer += fmt::format(",{}\"remote\": {{\"requests\": {}, \"bytes\": {}}}{}}}\n",
                        is_indented ? "\n  " : " ", remote_traffic.requests.load(),
                        remote_traffic.bytes.load(), is_indented ? "\n" : "");
}

}  // namespace

Terminal::Terminal(const Options& options, const Launch& launch) : is_first_(launch.rank == 0) {
  // Open MPI gives each process a pseudo-terminal, wherever its output ends.
  const bool out_is_terminal = launch.by.empty() && isatty(STDOUT_FILENO) != 0;
  colour_ = !options.plain && wants_colour(options.color, out_is_terminal);
  millions_ = shows_24_bit_colours();
  has_width_limit_ = out_is_terminal || set("COLUMNS");
  json_ = options.json;
  utf8_ = !options.plain && locale_is_utf8();
  quiet_ = options.quiet || !is_first_;
  err_is_terminal_ = is_first_ && isatty(STDERR_FILENO) != 0 && !is_dumb();
  width_ = columns_of(out_is_terminal ? STDOUT_FILENO : STDERR_FILENO);
}

bool Terminal::interactive() const {
  return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
}

bool Terminal::out(std::string_view text) {
  if (!is_first_) return true;
  if (stdout_reader_closed_ || out_failed_) return false;
  int problem = write_all(STDOUT_FILENO, with_visible_controls(text));
  if (problem == EPIPE) {
    stdout_reader_closed_ = true;
  } else if (problem != 0) {
    out_failed_ = true;
    error(std::string("standard output: ") + std::strerror(problem));
  }
  return problem == 0;
}

bool Terminal::out_line(std::string_view text) {
  std::string line(text);
  if (!line.ends_with('\n')) line += '\n';
  if (json_ && remote_traffic.requests.load() != 0) insert_transferred_bytes_json(line);
  return out(line);
}

void Terminal::say(std::string_view line) {
  if (!quiet_) error(line);
}

void Terminal::error(std::string_view text) {
  std::string line = with_visible_controls(text);
  if (!line.ends_with('\n')) line += '\n';
  write_all(STDERR_FILENO, line);
}

bool Terminal::ask(std::string_view question) {
  write_all(STDERR_FILENO, with_visible_controls(question));
  std::string answer;
  char letter = 0;
  while (::read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n') answer += letter;
  return answer == "y" || answer == "Y" || answer == "yes";
}

namespace {

std::string time_left(double seconds) {
  auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s left", whole);
  if (whole < 3600) return fmt::format("{} min left", whole / 60);
  return fmt::format("{} h {} min left", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_text(Phase phase, std::uint64_t done, std::uint64_t total, bool in_bytes,
                          double seconds) {
  std::string text(phase_title(phase));
  auto amount = [&](std::uint64_t value) {
    return in_bytes ? human_bytes(value) : human_count(value);
  };
  if (total > 0) text += "  " + amount(done) + " of " + amount(total);
  if (seconds < 0.5 || done == 0) return text;
  double speed = static_cast<double>(done) / seconds;
  text += "  " + amount(static_cast<std::uint64_t>(speed)) + "/s";
  if (total > done) text += "  " + time_left(static_cast<double>(total - done) / speed);
  return text;
}

struct ProgressLine::State {
  std::mutex mutex;
  std::condition_variable stop_now;
  bool stop = false;
  std::thread painter;
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kJsonForm = "json";
// Interval of progress lines in batch logs.
constexpr std::chrono::seconds kHeartbeat(30);

// Progress and rate of the current phase.
class PhaseClock {
 public:
  std::string text(const Progress& progress) {
    if (progress.phase != phase_) {
      phase_ = progress.phase;
      began_ = Clock::now();
    }
    if (progress.cancelled) return "Stopping";
    double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    return progress_text(phase_, progress.done, progress.total, progress.in_bytes, seconds);
  }

 private:
  Phase phase_ = Phase::kIdle;
  Clock::time_point began_ = Clock::now();
};

// Prints a progress line from time to time. Polls ten times a second, so that the rate is that of
// the phase.
void print_progress_lines(const Progress& progress, std::mutex& mutex,
                          std::condition_variable& changed, const bool& stop) {
  PhaseClock clock;
  Clock::time_point next = Clock::now() + kHeartbeat;
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return stop; })) {
    std::string text = clock.text(progress);
    if (Clock::now() < next) continue;
    write_all(STDERR_FILENO, text + "\n");
    next += kHeartbeat;
  }
}

// For programs (SHARDWRIGHT_PROGRESS=json): ten times a second a line of JSON if anything has
// changed, and one at the end.
void stream(const Progress& progress, std::mutex& mutex, std::condition_variable& changed,
            const bool& stop) {
  std::string last;
  const auto write_new = [&] {
    std::string line =
        progress_line(progress.phase, progress.done, progress.total, progress.in_bytes);
    if (line != last) write_all(STDERR_FILENO, line);
    last = std::move(line);
  };
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return stop; })) write_new();
  write_new();
}

// Repaints ten times a second; jobs below 300 ms show no line.
void repaint_progress_line(const Progress& progress, int width, std::mutex& mutex,
                           std::condition_variable& changed, const bool& stop) {
  PhaseClock clock;
  bool shown = false;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::milliseconds(300), [&] { return stop; });
  while (!stop) {
    std::string text = clock.text(progress);
    text.resize(std::min(text.size(), static_cast<std::size_t>(width) - 1));
    write_all(STDERR_FILENO, "\r\x1b[K" + text);
    shown = true;
    changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return stop; });
  }
  if (shown) write_all(STDERR_FILENO, "\r\x1b[K");
}

}  // namespace

ProgressLine::ProgressLine(const Terminal& terminal, const Progress& progress)
    : state_(std::make_unique<State>()) {
  if (terminal.quiet()) return;
  if (const char* form = std::getenv("SHARDWRIGHT_PROGRESS");
      form != nullptr && form == kJsonForm) {
    start_thread(state_->painter, [state = state_.get(), &progress] {
      stream(progress, state->mutex, state->stop_now, state->stop);
    });
    return;
  }
  if (!terminal.is_stderr_a_terminal()) {
    start_thread(state_->painter, [state = state_.get(), &progress] {
      print_progress_lines(progress, state->mutex, state->stop_now, state->stop);
    });
    return;
  }
  start_thread(state_->painter, [state = state_.get(), &progress, width = terminal.width()] {
    repaint_progress_line(progress, width, state->mutex, state->stop_now, state->stop);
  });
}

ProgressLine::~ProgressLine() {
  if (!state_->painter.joinable()) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->stop_now.notify_one();
  state_->painter.join();
}

}  // namespace shw::cli
