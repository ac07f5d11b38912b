// The table of all native codecs, one line each: X(id in streams, name, type, name in configurations).
//
// The settings are TYPESettings, in stream/NAME.h. All else follows from the lines: the variant of settings, the
// parser, the kernels' launches, the sources that CMake writes (cmake/codecs.cmake reads this file) and what Python is
// told.
#pragma once
#include "stream/base_delta.h"
#include "stream/codebook.h"
#include "stream/float_format.h"
#include "stream/qsgd.h"
#include "stream/s2fp8.h"
#include "stream/settings.h"
#include "stream/smaq.h"

// Codecs that write groups (FORMAT.md, section 3): their settings have group_settings().
#define ARRCOMP_GROUPED_CODECS(X)                    \
  X(1, lossless, Lossless, "lossless")               \
  X(2, error_bounded, ErrorBounded, "error-bounded") \
  X(7, base_delta, BaseDelta, "base-delta")

// Codecs that write buckets (section 5): their settings have layout(element), and the class template TYPE of
// codecs/bucketed/NAME.h codes a bucket.
#define ARRCOMP_BUCKETED_CODECS(X)                \
  X(3, qsgd, Qsgd, "qsgd")                        \
  X(4, smaq, Smaq, "smaq")                        \
  X(5, float_format, FloatFormat, "float-format") \
  X(6, s2fp8, S2fp8, "s2fp8")                     \
  X(8, codebook, Codebook, "codebook")

#define ARRCOMP_CODECS(X) ARRCOMP_GROUPED_CODECS(X) ARRCOMP_BUCKETED_CODECS(X)
