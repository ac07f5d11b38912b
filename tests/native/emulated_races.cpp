// What race_detector.h must and must not find: small kernels with and without the barriers that they need, in all
// orders of a warp's lanes. Prints what is judged wrongly and a summary; exits with 0 if nothing is.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "emulated_warp.h"

namespace {

using emulated::Order;
using emulated::races::Kind;

constexpr int max_threads = 64;
constexpr Kind read_after_write = Kind::read_after_write, write_after_read = Kind::write_after_read,
               write_after_write = Kind::write_after_write, with_atomic = Kind::with_atomic;

uint32_t* device_memory;  // a word for each thread

uint32_t* shared_memory() {
  __shared__ uint32_t words[max_threads];
  return words;
}

constexpr unsigned all_lanes = 0xffffffffu;
uint32_t thread() { return threadIdx.x; }
uint32_t next_thread() { return (thread() + 1) % blockDim.x; }
uint32_t lane() { return thread() % 32; }
bool leader() { return lane() == 0; }
uint32_t thread_of_grid() { return blockIdx.x * blockDim.x + thread(); }

void vote() { __ballot_sync(all_lanes, true); }

// What is read goes somewhere, or it would not be read.
void use(uint32_t value) {
  if (value == 0xdeadbeef) std::abort();
}

// Each thread writes its word, then reads its neighbour's.
template <class Between>
void write_and_read(uint32_t* words, Between between) {
  words[thread()] = thread();
  between();
  use(words[next_thread()]);
}

template <class Between>
void read_and_write(uint32_t* words, Between between) {
  use(words[next_thread()]);
  between();
  words[thread()] = thread();
}

// One thread writes all words in some way, then each reads one.
template <class Write>
void write_all_and_read(Write write) {
  uint32_t* const words = shared_memory();
  if (leader()) write(words);
  vote();
  use(words[thread()]);
}

struct Row {
  uint32_t words[32];
};

struct Quad {
  uint32_t words[4];
};

struct Kernel {
  const char* name;
  std::set<Kind> found;
  void (*run)();
  int warps = 1;
  unsigned blocks = 1;
};

const Kernel kernels[] = {
    {"a vote orders nothing", {read_after_write}, [] { write_and_read(shared_memory(), vote); }},
    {"a shuffle orders nothing",
     {read_after_write},
     [] { write_and_read(shared_memory(), [] { __shfl_sync(all_lanes, thread(), 31); }); }},
    {"a reduction orders nothing",
     {read_after_write},
     [] { write_and_read(shared_memory(), [] { __reduce_or_sync(all_lanes, thread()); }); }},
    {"a barrier orders", {}, [] { write_and_read(shared_memory(), __syncwarp); }},
    {"device memory is watched too", {read_after_write}, [] { write_and_read(device_memory, vote); }},
    {"a barrier orders device memory", {}, [] { write_and_read(device_memory, __syncwarp); }},
    {"a write after a read", {write_after_read}, [] { read_and_write(shared_memory(), vote); }},
    {"a write after a read and a barrier", {}, [] { read_and_write(shared_memory(), __syncwarp); }},
    {"other values", {write_after_write}, [] { shared_memory()[0] = thread(); }},
    {"the same value, which all read back",
     {},
     [] {
       shared_memory()[0] = 7;
       vote();
       use(shared_memory()[0]);
     }},
    {"the same value by half of the lanes, which all read",
     {read_after_write},
     [] {
       if (lane() < 16) shared_memory()[0] = 7;
       vote();
       use(shared_memory()[0]);
     }},
    {"bytes side by side",
     {},
     [] {
       auto* const bytes = reinterpret_cast<uint8_t*>(shared_memory());
       bytes[thread()] = static_cast<uint8_t>(thread());
       vote();
       use(bytes[thread()]);
     }},
    {"bytes of a word",
     {read_after_write},
     [] {
       reinterpret_cast<uint8_t*>(shared_memory())[thread()] = static_cast<uint8_t>(thread());
       vote();
       use(shared_memory()[thread() / 4]);
     }},
    {"sixteen bytes a lane",
     {read_after_write},
     [] {
       if (lane() < 8) reinterpret_cast<Quad*>(shared_memory())[lane()] = {{thread(), 1, 2, 3}};
       vote();
       use(shared_memory()[thread()]);
     }},
    {"a structure",
     {read_after_write},
     [] { write_all_and_read([](uint32_t* words) { *reinterpret_cast<Row*>(words) = Row{{1, 2, 3}}; }); }},
    {"memcpy of a constant size",
     {read_after_write},
     [] { write_all_and_read([](uint32_t* words) { memcpy(words, device_memory, 128); }); }},
    {"memcpy of any size",
     {read_after_write},
     [] { write_all_and_read([](uint32_t* words) { memcpy(words, device_memory, 4 * blockDim.x); }); }},
    {"memmove",
     {read_after_write},
     [] { write_all_and_read([](uint32_t* words) { memmove(words, device_memory, 4 * blockDim.x); }); }},
    {"memset",
     {read_after_write},
     [] { write_all_and_read([](uint32_t* words) { memset(words, 1, 4 * blockDim.x); }); }},
    {"local memory is a lane's own",
     {},
     [] {
       uint32_t words[max_threads];
       for (uint32_t i = 0; i < blockDim.x; ++i) words[(i + thread()) % blockDim.x] = i;
       vote();
       use(words[next_thread()]);
     }},
    {"atomics",
     {},
     [] {
       atomicAdd(device_memory, 1u);
       vote();
       use(atomicMax(device_memory, thread()));
     }},
    {"atomics that others look at",
     {},
     [] {
       if (leader()) atomicExch(device_memory, 1u);
       vote();
       use(*const_cast<const volatile uint32_t*>(device_memory));
     }},
    {"volatile accesses",
     {},
     [] {
       volatile uint32_t* const words = device_memory;
       words[thread()] = thread();
       vote();
       use(words[next_thread()]);
     }},
    {"an atomic access and then another",
     {with_atomic},
     [] {
       if (leader()) atomicAdd(device_memory, 1u);
       vote();
       use(device_memory[0]);
     }},
    {"an access and then an atomic one",
     {with_atomic},
     [] {
       if (lane() == 1) device_memory[0] = 1;
       vote();
       if (leader()) atomicAdd(device_memory, 1u);
     }},
    {"an atomic access, a barrier and another",
     {},
     [] {
       if (leader()) atomicAdd(device_memory, 1u);
       __syncwarp();
       use(device_memory[0]);
     }},
    {"a warp's barrier does not order two",
     {write_after_write},
     [] {
       __syncwarp();
       shared_memory()[lane()] = thread();
       __syncwarp();
     },
     2},
    {"two warps with their block's barrier", {}, [] { write_and_read(shared_memory(), __syncthreads); }, 2},
    {"two warps with a barrier before",
     {write_after_write},
     [] {
       __syncthreads();
       shared_memory()[lane()] = thread();
     },
     2},
    {"two blocks have their own shared memory", {}, [] { shared_memory()[thread()] = thread_of_grid(); }, 1, 2},
    {"two blocks have the same device memory",
     {write_after_write},
     [] { device_memory[thread()] = thread_of_grid(); },
     1,
     2},
};

std::set<Kind> found() {
  const std::vector<Kind> kinds = emulated::races::take_found();
  emulated::races::leave_out_sync(nullptr);  // found anew in the next kernel
  return {kinds.begin(), kinds.end()};
}

class Verdicts {
 public:
  void expect(const std::string& name, const std::set<Kind>& got, const std::set<Kind>& wanted) {
    ++count_;
    if (got == wanted) return;
    ++wrong_;
    std::printf("%s: %s instead of %s\n", name.c_str(), text(got).c_str(), text(wanted).c_str());
  }

  bool finish() const {
    std::printf("%d verdicts, %d of them wrong\n", count_, wrong_);
    return wrong_ == 0;
  }

 private:
  static std::string text(const std::set<Kind>& kinds) {
    const char* const names[] = {"a read after a write", "a write after a read", "two writes", "one atomic access"};
    std::string all;
    for (const Kind kind : kinds) all += (all.empty() ? "" : ", ") + std::string(names[static_cast<int>(kind)]);
    return all.empty() ? "nothing" : all;
  }

  int count_ = 0, wrong_ = 0;
};

// A barrier that the kernel has, and that is left out.
void check_left_out(Verdicts& verdicts, Order order) {
  const auto run = [&] { emulated::launch(1, 1, order, 1, [] { write_and_read(shared_memory(), __syncwarp); }); };
  emulated::races::take_sync_places();
  run();
  const std::vector<const void*> places = emulated::races::take_sync_places();
  verdicts.expect("a barrier that is not left out", found(), {});
  if (places.size() != 1) std::abort();
  emulated::races::leave_out_sync(places[0]);
  run();
  verdicts.expect("a barrier that is left out", found(), {read_after_write});
}

}  // namespace

int main() {
  Verdicts verdicts;
  for (const Order order : {Order::ascending, Order::descending, Order::shuffled}) {
    for (const Kernel& kernel : kernels) {
      std::vector<uint32_t> memory(max_threads);
      device_memory = memory.data();
      emulated::launch(kernel.blocks, kernel.warps, order, 1, kernel.run);
      verdicts.expect(kernel.name, found(), kernel.found);
    }
    for (int shift = 0; shift < 2; ++shift)
      emulated::launch(1, 1, order, 1, [=] { shared_memory()[(thread() + static_cast<uint32_t>(shift)) % 32] = 1; });
    verdicts.expect("launches in order", found(), {});
    check_left_out(verdicts, order);
  }
  return verdicts.finish() ? 0 : 1;
}
