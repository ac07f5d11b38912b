// What the kernels of bucketed codecs are told.
#pragma once
#include "cuda/arguments.h"
#include "stream/bucket_statistics.h"
#include "stream/sums.h"

namespace arrcomp::cuda {

struct BucketEncodeArray {
  BucketPlan plan;
  const void* source;
  uint8_t* payload;
  uint64_t* length;  // of the payload
  uint64_t first_unit;
};

using BucketDecodeArray = DecodeArrayOf<BucketPlan>;

// Statistics of the segments that begin in a chunk: buckets that have segments are larger than a chunk, so that at most
// one of them begins there, and at most one segment of the bucket before it.
struct ChunkStatistics {
  BucketStatistics later_segment, first_segment;  // of a bucket
};

// What is looked at before encoding, where it is more than a warp sees of a chunk: buckets, or, with `of_array`, each
// array as one.
struct StatisticsWork {
  ArrayList<BucketEncodeArray> arrays;
  ChunkStatistics* statistics;  // one a unit
  bool of_array;
};

struct BucketEncodeWork {
  ArrayList<BucketEncodeArray> arrays;
  Seed seed;
  uint64_t* tickets;  // two counters; these and the entries are for codecs with extra words, else null
  uint64_t* entries;  // for placing: one a unit
};

struct BucketDecodeWork {
  ArrayList<BucketDecodeArray> arrays;
  uint32_t* status;
};

// Payloads to add. The sum begins with the array `start` where that is not null.
struct SumWork {
  BucketPlan plan;
  ArrayList<Summand> terms;
  const void* start;
  void* target;
  uint32_t* status;
};

// Payloads whose sum is encoded, chunk by chunk: each warp has room for a chunk's elements in `windows`.
struct SumEncodeWork {
  SumWork sum;
  BucketEncodeArray result;
  Seed seed;
  uint8_t* windows;
};

// The settings as encoding kernels take them.
template <class Settings>
Settings ready_to_encode(Settings settings) {
  if constexpr (requires { settings.prepare_to_encode(); }) settings.prepare_to_encode();
  return settings;
}

// With what a codec is asked for.
template <class Work, class Settings>
struct BucketArguments {
  Work work;
  Settings settings;
};

// With the random numbers' seed as well.
template <class Settings>
struct FitArguments {
  StatisticsWork work;
  Seed seed;
  Settings settings;
};

// With what the terms' codec and the result's are asked for.
template <class Settings>
struct SumEncodeArguments {
  SumEncodeWork work;
  Settings of_terms, of_result;
};

}  // namespace arrcomp::cuda
