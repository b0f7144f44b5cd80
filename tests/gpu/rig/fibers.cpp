// The rig: runs threads of a block as fibers, and counts their memory accesses.
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "traffic.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace rig {
namespace {

constexpr std::size_t kStack = 128 << 10;

struct Fiber {
  ucontext_t context;
  std::unique_ptr<std::byte[]> stack{new std::byte[kStack]};
  bool done = true;
  unsigned int barriers = 0;  // that it has passed
  void* fake_stack = nullptr;
  void* tsan = nullptr;  // what TSan calls it
};

struct Note {
  Access access;
  unsigned int warp, lane;
  const void* site;
  unsigned int barriers;
  unsigned int turn;  // how often this thread reached this site since the last barrier
  std::uintptr_t address;
  std::size_t bytes;
};

struct Machine {
  std::vector<std::unique_ptr<Fiber>> fibers;
  ucontext_t scheduler;
  void* scheduler_fake = nullptr;
  const void* scheduler_bottom = nullptr;
  std::size_t scheduler_size = 0;
  void* scheduler_tsan = nullptr;
  Fiber* running = nullptr;
  const std::function<void()>* thread = nullptr;
  bool counts = false;
  Traffic traffic;
  std::vector<Note> notes;
  std::map<std::tuple<unsigned int, unsigned int, Access, const void*>, unsigned int> turns;
};

Machine& machine() {
  static Machine one;
  return one;
}

void before_switch([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom,
                   [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake, bottom, size);
#endif
}
void after_switch([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] std::size_t* size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, bottom, size);
#endif
}

// Inline, because TSan counts calls and returns per fiber.
[[gnu::always_inline]] inline void tell_tsan([[maybe_unused]] void* next) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(next, 0);
#endif
}

void body() {
  Machine& m = machine();
  after_switch(nullptr, &m.scheduler_bottom, &m.scheduler_size);
  (*m.thread)();
  m.running->done = true;
  before_switch(nullptr, m.scheduler_bottom, m.scheduler_size);
  tell_tsan(m.scheduler_tsan);
  setcontext(&m.scheduler);
}

void start(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = nullptr;
  fiber.done = false;
  fiber.barriers = 0;
  fiber.fake_stack = nullptr;
#if defined(__SANITIZE_THREAD__)
  fiber.tsan = __tsan_create_fiber(0);
#endif
  makecontext(&fiber.context, body, 0);
}

void go_on(Fiber& fiber) {
  Machine& m = machine();
  m.running = &fiber;
  before_switch(&m.scheduler_fake, fiber.stack.get(), kStack);
#if defined(__SANITIZE_THREAD__)
  m.scheduler_tsan = __tsan_get_current_fiber();
#endif
  tell_tsan(fiber.tsan);
  swapcontext(&m.scheduler, &fiber.context);
  after_switch(m.scheduler_fake, nullptr, nullptr);
#if defined(__SANITIZE_THREAD__)
  if (fiber.done) __tsan_destroy_fiber(std::exchange(fiber.tsan, nullptr));
#endif
}

// Turns beyond the first that bank conflicts need: neighbours request 128 bytes at once.
void count_shared(const Note* first, const Note* last, Traffic& traffic) {
  const auto at_once = static_cast<unsigned int>(128 / std::max<std::size_t>(first->bytes, 4));
  while (first < last) {
    std::array<std::set<std::uintptr_t>, 32> words;
    const unsigned int phase = first->lane / at_once;
    for (; first < last && first->lane / at_once == phase; ++first) {
      for (std::uintptr_t word = first->address / 4; word * 4 < first->address + first->bytes;
           ++word)
        words[word % 32].insert(word);
    }
    std::size_t most = 1;
    for (const auto& bank : words) most = std::max(most, bank.size());
    ++traffic.shared_phases;
    traffic.bank_conflicts += most - 1;
  }
}

// Neighbours that add to one word wait for each other, like those that use one bank.
void count_shared_adds(const Note* first, const Note* last, Traffic& traffic) {
  std::array<std::uint64_t, 32> turns{};
  for (const Note* note = first; note < last; ++note) ++turns[note->address / 4 % 32];
  const std::uint64_t most = *std::max_element(turns.begin(), turns.end());
  traffic.add_turns += most;
  traffic.add_conflicts += most - 1;
}

void count_sectors(const Note* first, const Note* last, Traffic& traffic) {
  std::set<std::uintptr_t> sectors;
  std::uint64_t bytes = 0;
  for (const Note* note = first; note < last; ++note) {
    bytes += note->bytes;
    sectors.insert(note->address / 32);
    sectors.insert((note->address + note->bytes - 1) / 32);
  }
  if (first->access == Access::kAdd) {
    traffic.added_bytes += bytes;
    traffic.added_touched += sectors.size() * 32;
    return;
  }
  const bool reads = first->access == Access::kRead;
  (reads ? traffic.read_bytes : traffic.written_bytes) += bytes;
  (reads ? traffic.read_touched : traffic.written_touched) += sectors.size() * 32;
}

bool is_shared(Access access) {
  return access == Access::kSharedRead || access == Access::kSharedWrite ||
         access == Access::kSharedAdd;
}

// Threads that accessed a byte of shared memory since the last barrier.
struct Met {
  unsigned int thread = 0;
  bool several = false, written = false, not_added = false;
};

void count_races(const std::vector<Note>& notes, Traffic& traffic) {
  std::map<std::pair<unsigned int, std::uintptr_t>, Met> bytes;
  for (const Note& note : notes) {
    if (!is_shared(note.access)) continue;
    const unsigned int thread = note.warp * 32 + note.lane;
    for (std::size_t i = 0; i < note.bytes; ++i) {
      auto [at, fresh] = bytes.try_emplace({note.barriers, note.address + i}, Met{thread});
      at->second.several = at->second.several || at->second.thread != thread;
      at->second.written = at->second.written || note.access != Access::kSharedRead;
      at->second.not_added = at->second.not_added || note.access != Access::kSharedAdd;
    }
  }
  for (const auto& [at, met] : bytes)
    traffic.races += met.several && met.written && met.not_added ? 1 : 0;
}

void count_block() {
  Machine& m = machine();
  count_races(m.notes, m.traffic);
  auto instruction = [](const Note& n) {
    return std::tuple(n.warp, n.barriers, n.access, n.site, n.turn);
  };
  std::stable_sort(m.notes.begin(), m.notes.end(),
                   [&](const Note& a, const Note& b) { return instruction(a) < instruction(b); });
  for (std::size_t first = 0; first < m.notes.size();) {
    std::size_t last = first;
    while (last < m.notes.size() && instruction(m.notes[last]) == instruction(m.notes[first]))
      ++last;
    const Note* notes = m.notes.data();
    if (m.notes[first].access == Access::kSharedAdd)
      count_shared_adds(notes + first, notes + last, m.traffic);
    else if (is_shared(m.notes[first].access))
      count_shared(notes + first, notes + last, m.traffic);
    else
      count_sectors(notes + first, notes + last, m.traffic);
    first = last;
  }
  m.notes.clear();
  m.turns.clear();
}

}  // namespace

void note(Access access, const void* site, const void* address, std::size_t bytes) {
  Machine& m = machine();
  if (!m.counts) return;
  unsigned int& turn = m.turns[{threadIdx.x, m.running->barriers, access, site}];
  m.notes.push_back({access, threadIdx.x / 32, threadIdx.x % 32, site, m.running->barriers, turn++,
                     reinterpret_cast<std::uintptr_t>(address), bytes});
}

void barrier() {
  Machine& m = machine();
  Fiber& self = *m.running;
  ++self.barriers;
  before_switch(&self.fake_stack, m.scheduler_bottom, m.scheduler_size);
  tell_tsan(m.scheduler_tsan);
  swapcontext(&self.context, &m.scheduler);
  after_switch(self.fake_stack, &m.scheduler_bottom, &m.scheduler_size);
}

void run_blocks(unsigned int blocks, unsigned int threads, const std::function<void()>& thread) {
  Machine& m = machine();
  while (m.fibers.size() < threads) m.fibers.push_back(std::make_unique<Fiber>());
  m.thread = &thread;
  gridDim = dim3(blocks);
  blockDim = dim3(threads);
  for (unsigned int block = 0; block < blocks; ++block) {
    blockIdx.x = block;
    for (unsigned int i = 0; i < threads; ++i) start(*m.fibers[i]);
    // Runs all threads up to the next barrier, repeatedly; threads that have returned are skipped.
    for (bool any = true; any;) {
      any = false;
      for (unsigned int i = 0; i < threads; ++i) {
        if (m.fibers[i]->done) continue;
        threadIdx.x = i;
        go_on(*m.fibers[i]);
        any = any || !m.fibers[i]->done;
      }
    }
    if (m.counts) count_block();
  }
}

void begin_counting() {
  machine().counts = true;
  machine().traffic = {};
}

Traffic counted() {
  machine().counts = false;
  return machine().traffic;
}

}  // namespace rig
