// doctest's main, except that a filter without matches is a failure: ctest runs the cases of a file
// by its path, and a wrong path would otherwise pass without running.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>

namespace {

std::atomic<int> started = 0;

struct Counter : doctest::IReporter {
  explicit Counter(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override { ++started; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("counter", 1, Counter);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  int code = context.run();
  if (context.shouldExit() || code != 0) return code;
  if (started == 0) {
    std::fprintf(stderr, "no test case passes the filter\n");
    return 1;
  }
  return 0;
}
