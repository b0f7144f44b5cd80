// Output streams: data on stdout, messages on stderr, progress only on terminals.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app/cli/options.h"
#include "core/base/progress.h"
#include "core/cluster/launch.h"

namespace shw::cli {

class Terminal {
 public:
  // Only the first of several processes writes to stdout and prints messages.
  explicit Terminal(const Options& options, const Launch& launch = {});

  bool colour() const { return colour_; }             // of stdout
  bool millions() const { return millions_; }         // 24-bit colours
  bool must_fit() const { return has_width_limit_; }  // width is limited by a terminal or an option
  bool utf8() const { return utf8_; }
  int width() const { return width_; }  // columns; 100 if unknown
  bool interactive() const;             // stdin and stderr are terminals
  bool is_stderr_a_terminal() const { return err_is_terminal_; }
  bool quiet() const { return quiet_; }

  // False once the reader has closed the pipe (head, a pager): output can stop.
  bool out(std::string_view text);
  bool out_line(std::string_view text);  // appends a newline if missing
  void say(std::string_view line);       // message on stderr; not with --quiet
  void error(std::string_view text);     // error on stderr
  // Asks on stderr and reads a line: true for "y" or "yes".
  bool ask(std::string_view question);
  // Writing stdout failed for another reason than a closed pipe: exit code 4.
  bool out_failed() const { return out_failed_; }

 private:
  bool colour_ = false, millions_ = false, has_width_limit_ = false, utf8_ = false, quiet_ = false;
  bool json_ = false;
  bool err_is_terminal_ = false;
  bool is_first_ = true;
  bool stdout_reader_closed_ = false, out_failed_ = false;
  int width_ = 100;
};

// A progress line on stderr with phase, amount, rate and time, while the object lives. Without a
// terminal it prints a line every 30 s, so that batch logs show activity; with
// SHARDWRIGHT_PROGRESS=json lines of JSON for the program that started it.
class ProgressLine {
 public:
  ProgressLine(const Terminal& terminal, const Progress& progress);
  ~ProgressLine();  // erases the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The text of the progress line, separate for tests.
std::string progress_text(Phase phase, std::uint64_t done, std::uint64_t total, bool in_bytes,
                          double seconds);

}  // namespace shw::cli
