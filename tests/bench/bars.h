// Prints one line per target value of the desktop, so that several programs fill one table.
#pragma once

#include <time.h>
#include <cstdio>
#include <string>

// CPU time of this thread: on a busy machine wall time measures other processes.
inline double thread_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

inline int bars_missed = 0;

// Prints a row of the table whose head desk.sh prints: "map by file  1.22 ms  bar 4 ms  met".
inline void tell_bar(const std::string& what, double value, double bar, const char* unit,
                     const std::string& more = {}) {
  bool missed = value > bar;
  bars_missed += missed ? 1 : 0;
  std::printf("%-46s %8.2f %-2s %6.0f %-2s  %-7s %s\n", what.c_str(), value, unit, bar, unit,
              missed ? "MISSED" : "met", more.c_str());
  std::fflush(stdout);
}
