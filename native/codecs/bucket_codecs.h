// All codecs of buckets.
#pragma once
#include "codecs/bucket_chunks.h"
#include "codecs/qsgd.h"
#include "codecs/smaq.h"
