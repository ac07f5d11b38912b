#include "cpu/select.h"

#include <atomic>
#include <cstring>

#include "backend.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace arrcomp::cpu {
namespace {

#ifdef __x86_64__
// Which older versions of Clang do not let __builtin_cpu_supports ask for.
bool has_lzcnt_and_f16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0 &&
         __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT) != 0;
}
#endif

struct IsaList {
  const Isa* list[4] = {};
  const char* names[4] = {};  // ends with a null pointer
  int count = 0;
  const char* missing = "";  // the processor's best set, where the build has plain code alone for it

  IsaList() {
#ifdef __x86_64__
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") && has_lzcnt_and_f16c();
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512cd");
#ifdef ARRCOMP_AVX512
    if (avx512) add(avx512::isa);
#endif
#ifdef ARRCOMP_AVX2
    if (avx2) add(avx2::isa);
#endif
    if (count == 0 && avx2) missing = avx512 ? "avx512" : "avx2";
#endif
#ifdef ARRCOMP_NEON
    add(neon::isa);
#endif
    add(plain::isa);
  }

  void add(const Isa& isa) {
    list[count] = &isa;
    names[count++] = isa.name;
  }
};

const IsaList& available() {
  static const IsaList list;
  return list;
}

std::atomic<const Isa*> chosen{nullptr};

}  // namespace

const Isa& isa() {
  const Isa* isa = chosen.load(std::memory_order_relaxed);
  return isa ? *isa : *available().list[0];
}

const char* const* instruction_sets() { return available().names; }

const char* missing_instruction_set() { return available().missing; }

const char* instruction_set() { return isa().name; }

bool use_instruction_set(const char* name) {
  for (int i = 0; i < available().count; ++i) {
    if (strcmp(name, available().names[i]) != 0) continue;
    chosen.store(available().list[i], std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace arrcomp::cpu
