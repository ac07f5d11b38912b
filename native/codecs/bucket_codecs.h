// All codecs of buckets.
#pragma once
#include "codecs/bucket_chunks.h"
#include "codecs/float_format.h"
#include "codecs/qsgd.h"
