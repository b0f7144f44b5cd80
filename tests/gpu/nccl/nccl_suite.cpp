// Runs under mpirun: the suite of all transports on NCCL's transport, bootstrapped over MPI, with
// the test double of its library. With an argument it continues until the fault in
// $SHW_NCCL_DOUBLE_FAULT has happened: every process must then end with an error that contains that
// word.
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "core/cluster/collectives.h"
#include "core/cluster/conformance.h"
#include "core/cluster/mpi.h"
#include "on_double.h"

using namespace shw;
using namespace shw::test;

namespace {

Status on_nccl(MpiSession& session, const NcclOptions& options,
               const std::function<Status(Transport&)>& work) {
  SHW_TRY(auto control, session.transport({1000}));
  SHW_TRY(auto transport, open_nccl(nccl_double().nccl, host_stage(), *control, options));
  return work(*transport);
}

int run_cases(MpiSession& session) {
  int failed = 0;
  for (const auto& one : conformance_cases()) {
    Status ended = on_nccl(session, nccl_options(), one.run);
    if (ended) continue;
    ++failed;
    std::fprintf(stderr, "worker %d of %d: %s: %s\n", session.rank(), session.size(), one.title,
                 ended.error().message.c_str());
  }
  NcclDoubleCounts counts{};
  nccl_double().counts(&counts);
  if (counts.alive != 0 || counts.groups < 100) ++failed;
  if (session.rank() == 0)
    std::printf("%zu cases, %d workers, %ld groups of NCCL\n", conformance_cases().size(),
                session.size(), counts.groups);
  return failed == 0 ? 0 : 1;
}

// Each process prints its error, and whether it was the expected one.
int run_until_one_fails(MpiSession& session, std::string_view part) {
  Status ended = on_nccl(session, nccl_options(), [&](Transport& transport) -> Status {
    for (int round = 0;; ++round) {
      std::vector<Bytes> to_each(static_cast<std::size_t>(session.size()), Bytes(10'000));
      SHW_TRY(auto come, exchange(transport, std::move(to_each), 1 << 24,
                                  {"round " + std::to_string(round), std::chrono::seconds(2)}));
    }
  });
  const std::string& why = ended.error().message;
  std::fprintf(stderr, "worker %d: %s\n", session.rank(), why.c_str());
  return why.find(part) != std::string::npos ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto session = begin_mpi(detect_own_launch());
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message.c_str());
    return 2;
  }
  const int code = argc > 1 ? run_until_one_fails(**session, argv[1]) : run_cases(**session);
  (*session)->end(false);
  return code;
}
