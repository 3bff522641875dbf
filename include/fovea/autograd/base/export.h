#pragma once

/// FOVEA_API marks what the shared library exports; all else in it is hidden.
#if defined(_WIN32)
#if defined(fovea_EXPORTS)
#define FOVEA_API __declspec(dllexport)
#elif defined(FOVEA_SHARED)
#define FOVEA_API __declspec(dllimport)
#else
#define FOVEA_API
#endif
#else
#define FOVEA_API __attribute__((visibility("default")))
#endif
