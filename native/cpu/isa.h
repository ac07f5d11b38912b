// What each instruction set of the CPU offers the driver: the codecs, compiled for it.
#pragma once
#include "codecs/grouped/rans_tables.h"
#include "stream/activation.h"
#include "stream/bucket_statistics.h"
#include "stream/prediction_choice.h"
#include "stream/reference.h"
#include "stream/sums.h"

namespace arrcomp {

struct EncodeJob {
  const Plan& plan;
  const void* source;
  double bound;      // absolute, of quantized chunks; 0: none are quantized
  int rounded_bits;  // of the mantissa
  GroupSettings settings;
  const Tables& tables;
  const BaseDeltaSettings* base_delta;  // null: the other codecs in groups
  uint64_t seed;
};

struct DecodeJob {
  const Plan& plan;
  const uint8_t* groups;  // their bytes
  const uint64_t* ends;   // of each group, from `groups`
  void* target;
  double bound;
  const Tables& tables;
  bool is_base_delta;
  bool streaming;  // around the caches, to a target that is aligned to 16 bytes
};

// A bucketed payload.
struct BucketJob {
  const Codec& codec;
  const BucketPlan& plan;
  const void* source;
  uint8_t* payload;
  void* target;
  uint64_t seed;
};

// A sum of bucketed payloads.
struct SumJob {
  const Codec& codec;
  const BucketPlan& plan;
  std::span<const Summand> terms;
  const void* start;  // an array that the sum begins with, or null
};

struct BucketFunctions {
  // Statistics of the elements [first, first + count), at most a segment of a bucket.
  BucketStatistics (*statistics)(const BucketJob& job, uint64_t first, uint64_t count);

  // Writes what is stored once for the array, or the numbers of a bucket.
  void (*store_array)(const BucketJob& job, const BucketStatistics& statistics);
  void (*store_bucket)(const BucketJob& job, uint64_t bucket, const BucketStatistics& statistics);

  // Encodes chunks [begin, end). Where the codec has extra words these go to `extras`, one chunk's after the other's, and
  // their ends, counted from there, into the directory. Returns how many they are.
  uint64_t (*encode_chunks)(const BucketJob& job, uint64_t begin, uint64_t end, uint32_t* extras);

  // Decodes chunks [begin, end); false where one is corrupt. The directory's entries are in order and end in the payload.
  bool (*decode_chunks)(const BucketJob& job, uint64_t begin, uint64_t end);

  // Puts elements [first, first + count) of a sum to `target`. `first` is a multiple of 32.
  void (*sum)(const SumJob& job, uint64_t first, uint64_t count, void* target);
};

// An activation of an array (backend.h).
struct ActivateJob {
  const Activation& activation;
  const Steps& steps;
  Element element;
  const ActivateTask& array;
};

struct StepGradJob {
  const Steps& steps;
  Element element;
  const StepGradTask& array;
};

// Units [begin, end) of activation_unit elements.
struct ActivationFunctions {
  void (*activate)(const ActivateJob& job, uint64_t begin, uint64_t end);
  void (*step_grad)(const StepGradJob& job, uint64_t begin, uint64_t end);
};

// A predicted array.
struct PredictionJob {
  const Element& element;
  const GroupSettings& settings;  // decoding needs none
  double bound;                   // absolute; 0: without loss
  Multiples multiples;            // not known where samples are taken
  GapMask mask;                   // neither
};

struct PredictionFunctions {
  // Adds all samples of the array to `samples`, and chooses its multiples. Returns the bound within which it is predicted:
  // multiples are kept without loss.
  double (*sample)(const PredictionJob& job, const Axes& axes, const void* source, PredictionSamples& samples);
  FloatTraits (*traits)(const Element& element);

  // Elements [begin, end) of a step's coarser grid, or codes [begin, end) of the step, which stand from `codes` on
  // (codecs/predicted/refine.h).
  void (*coarsen)(const PredictionJob& job, const Refinement& step, const void* fine, void* coarse, uint64_t begin,
                  uint64_t end);
  Unserved (*encode_step)(const PredictionJob& job, const Refinement& step, const void* coarse, const void* fine,
                          void* made, void* codes, uint64_t begin, uint64_t end);
  void (*decode_step)(const PredictionJob& job, const Refinement& step, const void* coarse, const void* codes,
                      void* fine, uint64_t begin, uint64_t end);

  // Lines [begin, end) of `size` elements of the coarsest grid (codecs/predicted/coarsest.h), without differences.
  Unserved (*encode_lines)(const PredictionJob& job, double coarse_bound, uint64_t size, const void* source, void* made,
                           void* codes, uint64_t begin, uint64_t end);
  void (*decode_lines)(const PredictionJob& job, double coarse_bound, uint64_t size, const void* codes, void* target,
                       uint64_t begin, uint64_t end);

  // Takes differences along an axis, or adds them up, in units [begin, end).
  void (*change_differences)(const PredictionJob& job, bool take, uint64_t size, uint64_t inner, void* codes,
                             uint64_t begin, uint64_t end);

  // Writes `count` differences: of integers from those so many places before.
  void (*write_differences)(const PredictionJob& job, const void* integers, uint64_t distance, void* differences,
                            uint64_t count);

  // Makes codes where lines of boxes end, along axes that are cut, those next to them (codecs/predicted/box_ends.h).
  void (*even_ends)(const PredictionJob& job, const Prediction& prediction, uint32_t cut, void* codes);

  // Elements [first, first + count) that are kept exactly (codecs/predicted/exact.h).
  FoundExact (*find_exact)(const PredictionJob& job, Unserved unserved, const void* source, void* made, uint64_t first,
                           uint64_t count);
  void (*put_exact)(const PredictionJob& job, const void* exact, void* target, uint64_t first, uint64_t count);

  // Brings pieces [begin, end) of a mask of gaps from elements to bytes, or back to elements [first, last); and takes
  // differences of the bytes along an axis, or adds them up, in units [begin, end) (codecs/predicted/gap_mask.h).
  void (*find_mask)(const PredictionJob& job, const MaskGrid& grid, const void* source, uint8_t* bytes, uint64_t begin,
                    uint64_t end);
  void (*put_mask)(const PredictionJob& job, const MaskGrid& grid, const uint8_t* bytes, uint64_t first, uint64_t last,
                   void* target, uint64_t begin, uint64_t end);
  void (*change_mask)(bool take, uint64_t size, uint64_t inner, uint8_t* bytes, uint64_t begin, uint64_t end);

  // Brings elements from the array of rows to places [begin, end) of that by columns, or back (codecs/predicted/columns.h).
  void (*to_columns)(const Element& element, const Columns& matrix, const void* rows, void* columns, uint64_t begin,
                     uint64_t end);
  void (*to_rows)(const Element& element, const Columns& matrix, const void* columns, void* rows, uint64_t begin,
                  uint64_t end);
};

// Arrays with a reference. Ranges of elements begin at a multiple of 32.
struct ReferenceFunctions {
  // What blocks [begin, end) of an array of so many bytes add to its hash.
  uint64_t (*hash)(const void* array, uint64_t bytes, uint64_t begin, uint64_t end);

  // Of elements [first, first + elements): adds the numbers of what would be listed; writes the codes, from `codes` on,
  // and adds the same; lists codes that are not 0, and exact elements.
  void (*count)(const ReferenceJob& job, uint64_t first, uint64_t elements, DeltaCounts& counts);
  void (*codes)(const ReferenceJob& job, uint64_t first, uint64_t elements, void* codes, DeltaCounts& counts);
  void (*list)(const ReferenceJob& job, uint64_t first, uint64_t elements, const DeltaLists& lists);

  // Gaps [begin, end) of a list of places in an array of `count` elements.
  void (*gaps)(uint64_t count, const void* places, uint64_t begin, uint64_t end, void* gaps);

  // Makes elements of their codes, which stand from `codes` on. The target may be the reference; a `streaming` one is
  // another array, aligned to 16 bytes, and its elements go around the caches.
  void (*apply)(const ReferenceJob& job, uint64_t first, uint64_t elements, const void* codes, void* target,
                bool streaming);

  // Elements that gaps [begin, end) of a list pass, more than `count` where they are more; begin is a multiple of 32.
  uint64_t (*passed)(uint64_t count, const void* gaps, uint64_t begin, uint64_t end);

  // Makes elements of [begin, end) of a list, before which `place` elements have been passed: of codes, or exact ones.
  void (*put)(const ReferenceJob& job, bool exact, const void* gaps, uint64_t place, const void* stored, uint64_t begin,
              uint64_t end, void* target);
};

struct Isa {
  const char* name;

  // Bytes of memory that encode_groups needs as scratch.
  uint64_t (*scratch_bytes)(const Element& element);

  // The smallest and largest finite value among elements [first, first + count), widened into `range`.
  void (*widen_range)(const EncodeJob& job, uint64_t first, uint64_t count, double range[2]);

  // Encodes groups [begin, end) one after the other to `out`; their sizes go to sizes[begin .. end). Returns the bytes
  // written.
  uint64_t (*encode_groups)(const EncodeJob& job, uint64_t begin, uint64_t end, uint8_t* out, uint32_t* sizes,
                            void* scratch);

  // Decodes groups [begin, end); false where one is corrupt.
  bool (*decode_groups)(const DecodeJob& job, uint64_t begin, uint64_t end);

  const BucketFunctions& buckets_of_floats;  // and of shorter ones
  const BucketFunctions& buckets_of_doubles;
  const ActivationFunctions& activations;
  const PredictionFunctions& prediction;
  const ReferenceFunctions& reference;

  const BucketFunctions& buckets(const Element& element) const {
    return element.width == 64 ? buckets_of_doubles : buckets_of_floats;
  }
};

// What the sources of an instruction set define, where it is compiled: groups.inc, buckets.inc (of each arithmetic type),
// activations.inc, predicted.inc and referenced.inc.
#define ARRCOMP_DECLARE_ISA(name)                        \
  namespace name {                                       \
  extern const Isa isa;                                  \
  extern const BucketFunctions buckets_of_F32;           \
  extern const BucketFunctions buckets_of_F64;           \
  extern const ActivationFunctions activation_functions; \
  extern const PredictionFunctions prediction_functions; \
  extern const ReferenceFunctions reference_functions;   \
  }
ARRCOMP_DECLARE_ISA(plain)
ARRCOMP_DECLARE_ISA(avx2)
ARRCOMP_DECLARE_ISA(avx512)
ARRCOMP_DECLARE_ISA(neon)
#undef ARRCOMP_DECLARE_ISA

}  // namespace arrcomp
