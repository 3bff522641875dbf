#pragma once

#include <stdexcept>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// The base of every error Fovea throws. The text says what was asked, what was found and the likely fix,
/// and starts with the op or function in brackets: `[matmul] inner sizes differ: ...`.
class FOVEA_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes, axes or sizes that do not fit together.
class FOVEA_API ShapeError : public Error {
 public:
  using Error::Error;
};

/// f32 met f64, or data was read as another type than it has.
class FOVEA_API DtypeError : public Error {
 public:
  using Error::Error;
};

/// An id, target or element position outside its range.
class FOVEA_API IndexError : public Error {
 public:
  using Error::Error;
};

/// A misuse of the graph: freed, changed after being saved, or not differentiable (again).
class FOVEA_API GraphError : public Error {
 public:
  using Error::Error;
};

/// A value or gradient that is not finite where it has to be.
class FOVEA_API NonFiniteError : public Error {
 public:
  using Error::Error;
};

/// An option or argument with a value that has no meaning (a negative limit, a probability of 2).
class FOVEA_API ValueError : public Error {
 public:
  using Error::Error;
};

/// An array for which the system has no memory. The text has its shape and bytes.
class FOVEA_API MemoryError : public Error {
 public:
  using Error::Error;
};

/// A file that can't be read or written, or does not hold what it should. The text has its path.
class FOVEA_API FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace fovea
