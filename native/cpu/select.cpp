#include "cpu/select.h"

#include <atomic>
#include <cstring>

#include "backend.h"

#ifdef ARRCOMP_X86
#include <cpuid.h>
#endif

namespace arrcomp::cpu {
namespace {

#ifdef ARRCOMP_X86
// Which older versions of Clang do not let __builtin_cpu_supports ask for.
bool has_lzcnt_and_f16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0 &&
         __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT) != 0;
}
#endif

struct Machines {
  const Machine* list[4] = {};
  const char* names[4] = {};  // ends with a null pointer
  int count = 0;

  Machines() {
#ifdef ARRCOMP_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") && has_lzcnt_and_f16c();
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512cd");
    if (avx512) add(avx512_machine);
    if (avx2) add(avx2_machine);
#endif
#ifdef ARRCOMP_ARM
    add(neon_machine);
#endif
    add(plain_machine);
  }

  void add(const Machine& machine) {
    list[count] = &machine;
    names[count++] = machine.name;
  }
};

const Machines& available() {
  static const Machines machines;
  return machines;
}

std::atomic<const Machine*> chosen{nullptr};

}  // namespace

const Machine& machine() {
  const Machine* machine = chosen.load(std::memory_order_relaxed);
  return machine ? *machine : *available().list[0];
}

const char* const* instruction_sets() { return available().names; }

const char* instruction_set() { return machine().name; }

bool use_instruction_set(const char* name) {
  for (int i = 0; i < available().count; ++i) {
    if (strcmp(name, available().names[i]) != 0) continue;
    chosen.store(available().list[i], std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace arrcomp::cpu
