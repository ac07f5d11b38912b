// All codecs of buckets.
#pragma once
#include "codecs/bucket_chunks.h"
#include "codecs/codebook.h"
#include "codecs/float_format.h"
#include "codecs/qsgd.h"
#include "codecs/s2fp8.h"
#include "codecs/smaq.h"
