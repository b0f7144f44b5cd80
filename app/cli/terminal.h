// Where text goes: data to stdout, talk to stderr, progress to a terminal only.
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
  // Of several processes only the first writes to stdout and talks.
  explicit Terminal(const Options& options, const Launch& launch = {});

  bool colour() const { return colour_; }      // of stdout
  bool millions() const { return millions_; }  // of colours
  bool must_fit() const { return must_fit_; }  // stdout is a terminal, or somebody says how wide
  bool utf8() const { return utf8_; }
  int width() const { return width_; }  // columns; 100 where nobody knows
  bool interactive() const;             // a person can answer: stdin and stderr are terminals
  bool talks_to_terminal() const { return err_is_terminal_; }
  bool quiet() const { return quiet_; }

  // False once the reader is gone (head, a pager that was quit): nothing more needs to be made.
  bool out(std::string_view text);
  bool out_line(std::string_view text);  // with a newline at the end, whether it had one or not
  void say(std::string_view line);       // stderr, with a newline; not with --quiet
  void error(std::string_view text);     // stderr, with a newline
  // Asks on stderr and reads a line: true for "y" or "yes".
  bool ask(std::string_view question);
  // stdout could not be written for another reason than that the reader left: exit code 4.
  bool out_failed() const { return out_failed_; }

 private:
  bool colour_ = false, millions_ = false, must_fit_ = false, utf8_ = false, quiet_ = false;
  bool err_is_terminal_ = false;
  bool is_first_ = true;
  bool reader_left_ = false, out_failed_ = false;
  int width_ = 100;
};

// A line on stderr that says what, how much, how fast and how long, as long as it lives; where
// stderr is no terminal a line every 30 s, so that the log of a batch job says that it is alive.
class ProgressLine {
 public:
  ProgressLine(const Terminal& terminal, const Progress& progress);
  ~ProgressLine();  // wipes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What the line says; apart, so that it can be tested.
std::string progress_text(Phase phase, std::uint64_t done, std::uint64_t total, bool in_bytes,
                          double seconds);

}  // namespace shw::cli
