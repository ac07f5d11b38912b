// How the C library's functions fail inside: exceptions that arrcomp.cpp makes statuses of.
#pragma once
#include <string>
#include <utility>

#include "c/arrcomp.h"
#include "text.h"

namespace arrcomp::c {

struct Failure {
  arrcomp_status status;
  std::string message;
};

[[noreturn]] inline void fail(arrcomp_status status, std::string message) { throw Failure{status, std::move(message)}; }

}  // namespace arrcomp::c
