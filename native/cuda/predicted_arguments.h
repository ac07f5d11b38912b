// What the kernels of predicted arrays are told (FORMAT.md, section 9). Ways to predict are chosen on the device, where
// the values are: how many steps an array has, and whether it is predicted at all, is known there alone. The host
// launches kernels for as many steps as there may be.
#pragma once
#include "cuda/arguments.h"
#include "stream/predicted_payload.h"
#include "stream/prediction_choice.h"
#include "stream/prediction_trial.h"

namespace arrcomp::cuda {

// An array on its way from elements to codes, or back, in device memory.
struct PredictedArray {
  Prediction prediction;
  Refinement refinements[max_steps];
  uint64_t grid_offsets[max_steps];  // where grids but the finest stand in `grids`
  Axes coarsest;                     // grid
  double bound;
  bool is_active;                      // it is predicted: kernels pass by all others
  const void* source;                  // elements to encode
  uint8_t* codes;                      // of all elements
  uint8_t* grids;                      // encoding: all but the finest grid; decoding: every second grid
  uint8_t* made;                       // the finest grid, as it is decoded
  uint32_t has_unserved, found_exact;  // the latter a FoundExact, as a number that several raise
  PredictedBytes bytes;                // of the payloads
  uint8_t *coded_codes, *coded_mask, *coded_exact;

  // Says how the array is predicted, and that it is. `its_bound`: where it is not kept without loss.
  ARRCOMP_SHARED void predict(const Prediction& its_prediction, double its_bound, const Element& element) {
    prediction = its_prediction;
    activate(its_bound, element);
  }

  // The same, where its prediction is there.
  ARRCOMP_SHARED void activate(double its_bound, const Element& element) {
    bound = prediction.own_bound(its_bound);
    is_active = true;
    has_unserved = found_exact = 0;
    bytes = {};
    Grid grid(prediction.axes);
    uint64_t end = 0;
    for (int k = prediction.steps; k-- > 0;) {
      refinements[k] = grid.refinement(prediction.step[k], bound, prediction.multiples);
      grid.coarsen(prediction.step[k]);
      grid_offsets[k] = end;
      end += grid.axes().count() * (element.width / 8);
    }
    coarsest = grid.axes();
  }

  ARRCOMP_SHARED uint64_t elements() const { return prediction.axes.count(); }
  ARRCOMP_SHARED bool has_mask() const { return prediction.mask.is_given && has_unserved != 0; }
  ARRCOMP_SHARED bool has_exact() const { return found_exact == static_cast<uint32_t>(FoundExact::some); }
  ARRCOMP_SHARED bool is_ambiguous() const { return found_exact == static_cast<uint32_t>(FoundExact::ambiguous); }

  // Elements of grid k: the codes of the step from there stand behind as many.
  ARRCOMP_SHARED uint64_t elements_of(int k) const {
    if (k == prediction.steps) return elements();
    return refinements[k].coarse_elements();
  }

  // Grid k of an array that is encoded, as it is decoded; and as it was. The finest one alone is not the same memory.
  ARRCOMP_SHARED uint8_t* made_grid(int k) const { return k == prediction.steps ? made : grids + grid_offsets[k]; }
  ARRCOMP_SHARED const void* original_grid(int k) const { return k == prediction.steps ? source : made_grid(k); }

  // Grid k of an array that is decoded: grids take turns.
  ARRCOMP_SHARED uint8_t* decoded_grid(int k) const { return (prediction.steps - k) % 2 == 0 ? made : grids; }
};

// What of a predicted array has a payload.
enum class PredictedPart { codes, mask, exact };

// The arrays of a step of the way.
struct PredictionArguments {
  PredictedArray* arrays;
  uint64_t count;
  Element element;
  GroupSettings settings;  // decoding needs none
};

// What is known of an array before it is encoded.
struct PredictionState {
  PredictionSamples samples;
  double bound;  // within which the array is predicted: 0 where multiples are kept without loss
  Prediction ways[max_candidates];
  int count;                              // of ways
  uint64_t plain_lengths[Trial::shapes];  // of parts without prediction
};

// The memory of a predicted array.
struct PredictedMemory {
  uint64_t codes, grids, made, mask;  // bytes of each

  // A grid has at most two thirds of the next finer one's elements, and all but the finest at most twice the array's. Coded
  // codes take their place, and a mask's bytes, then coded elements, that of the codes.
  static PredictedMemory to_encode(const Element& element, uint64_t count) {
    const uint64_t item = element.width / 8;
    const Element code = code_element_of(element);
    const uint64_t mask = element.is_float() ? MaskGrid::most_bytes(count) : 0;
    return {larger(count * (code.width / 8), capacity_of_groups(element, count)),
            larger(2 * count * item, capacity_of_groups(code, count)), larger(count * item, 0),
            larger(capacity_of_groups(MaskGrid::plan_of(mask).element, mask), 0)};
  }

  // A mask's bytes, then elements that are kept exactly take the place of the codes. `made` is the target.
  static PredictedMemory to_decode(const Element& element, uint64_t count) {
    return {larger(count * (code_element_of(element).width / 8), 0),
            larger((count - count / 3) * (element.width / 8), 0), 0, 0};
  }

  ARRCOMP_SHARED uint64_t bytes() const { return codes + grids + made + mask; }

  ARRCOMP_SHARED void place(PredictedArray& array, uint8_t* memory) const {
    array.codes = array.coded_exact = memory;
    array.grids = array.coded_codes = memory + codes;
    array.made = memory + codes + grids;
    array.coded_mask = array.made + made;
  }

 private:
  static uint64_t larger(uint64_t a, uint64_t b) { return round_up(a > b ? a : b, 256); }
};

// What a trial works on.
struct TrialArguments {
  Trial trial;
  PredictedMemory memory_of_way;
  Plan plans[Trial::shapes];        // of parts
  uint64_t groups;                  // of a part, at most
  PredictionArguments trials;       // each way
  EncodeArguments plain;            // parts of all shapes without prediction
  uint8_t *cut, *coded, *memory;    // elements of parts, payloads of them without prediction, memory of the trials
  uint64_t cut_bytes, coded_bytes;  // of each

  ARRCOMP_SHARED uint8_t* cut_of(int shape) const { return cut + static_cast<uint64_t>(shape) * cut_bytes; }
};

// What is known of the array that is encoded.
struct ChoiceArguments {
  const EncodeArray* array;  // knows the bound
  PredictionState* state;
  PredictionArguments main;  // of one array
  PredictedMemory memory;
  uint8_t* memory_at;
  Axes axes;
};

// An array that is decoded, in device memory.
struct PredictedDecoding {
  DecodeArray codes, mask, elements;  // `elements`: of the array itself, or of what is kept exactly
  PredictedArray array;
};

}  // namespace arrcomp::cuda
