// What the kernels of bucketed codecs are told.
#pragma once
#include "cuda/arguments.h"
#include "stream/bucket_statistics.h"

namespace arrcomp::cuda {

struct BucketEncodeArray {
  BucketPlan plan;
  const void* source;
  uint8_t* payload;
  uint64_t* length;  // of the payload
  uint64_t first_unit;
};

using BucketDecodeArray = DecodeArrayOf<BucketPlan>;

// Statistics of the pieces that begin in a chunk: buckets that have pieces are larger than a chunk, so that at most one
// of them begins there, and at most one piece of the bucket before it.
struct ChunkStatistics {
  BucketStatistics later_piece, first_piece;  // of a bucket
};

struct BucketEncodeArguments {
  ArrayList<BucketEncodeArray> arrays;
  ChunkStatistics* statistics;  // one a unit, where buckets are larger than a piece
  QsgdSettings settings;
  Seed seed;
};

struct BucketDecodeArguments {
  ArrayList<BucketDecodeArray> arrays;
  uint32_t* status;
  QsgdSettings settings;
};

}  // namespace arrcomp::cuda
