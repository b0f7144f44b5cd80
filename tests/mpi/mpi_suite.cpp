// Runs under mpirun: the suite of all transports on MPI, with pieces of 1,000 bytes. With --die one
// process is killed in the middle, and the others must end as well.
#include <csignal>
#include <cstdio>
#include <string_view>

#include "core/cluster/collectives.h"
#include "core/cluster/conformance.h"
#include "core/cluster/mpi.h"

using namespace shw;

namespace {

int run_cases(MpiSession& session) {
  int failed = 0;
  for (const auto& one : test::conformance_cases()) {
    auto transport = session.transport({1000});
    Status ended = transport ? one.run(**transport)
                             : Status(tl::unexpected<Error>(std::move(transport).error()));
    if (ended) continue;
    ++failed;
    std::fprintf(stderr, "worker %d of %d: %s: %s\n", session.rank(), session.size(), one.title,
                 ended.error().message.c_str());
  }
  if (session.rank() == 0)
    std::printf("%zu cases, %d workers\n", test::conformance_cases().size(), session.size());
  return failed == 0 ? 0 : 1;
}

int run_until_one_dies(MpiSession& session) {
  auto transport = session.transport({});
  if (!transport) return 2;
  for (int round = 0;; ++round) {
    if (round == 100 && session.rank() == session.size() - 1) std::raise(SIGKILL);
    std::vector<Bytes> to_each(static_cast<std::size_t>(session.size()), Bytes(100'000));
    auto come = exchange(**transport, std::move(to_each), 1 << 24,
                         {"round " + std::to_string(round), std::chrono::seconds(5)});
    if (come) continue;
    std::fprintf(stderr, "worker %d: %s\n", session.rank(), come.error().message.c_str());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto session = begin_mpi(detect_own_launch());
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message.c_str());
    return 2;
  }
  bool dies = argc > 1 && std::string_view(argv[1]) == "--die";
  int code = dies ? run_until_one_dies(**session) : run_cases(**session);
  (*session)->end(false);
  return code;
}
