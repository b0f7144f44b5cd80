// Owner files of a process that has ended, and of another one that runs.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/io/owner.h"

namespace shw::test {

// Written by a child about itself before it ended; the child was waited for, so that its pid is
// free.
inline std::string dead_process() {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    std::string text = own_process_identity();
    ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  ssize_t length = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return text;
}

// Another process that runs as long as this object exists.
class LiveProcess {
 public:
  LiveProcess() {
    int ends[2], until[2];
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::pipe(until) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::close(until[1]);
      const std::string text = own_process_identity();
      char none = 0;
      const bool told = ::write(ends[1], text.data(), text.size()) != 0;
      const bool ended = ::read(until[0], &none, 1) == 0;  // returns when the other end is closed
      ::_exit(told && ended ? 0 : 1);
    }
    ::close(ends[1]);
    ::close(until[0]);
    until_ = until[1];
    text_.resize(4096);
    const ssize_t length = ::read(ends[0], text_.data(), text_.size());
    ::close(ends[0]);
    text_.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  }
  LiveProcess(const LiveProcess&) = delete;
  LiveProcess& operator=(const LiveProcess&) = delete;
  ~LiveProcess() {
    ::close(until_);
    ::waitpid(child_, nullptr, 0);
  }
  const std::string& text() const { return text_; }

 private:
  pid_t child_ = 0;
  int until_ = -1;
  std::string text_;
};

}  // namespace shw::test
