#pragma once

// Whether the address or the thread sanitizer is on, which GCC and clang say in different ways.
#if defined(__SANITIZE_ADDRESS__)
#define FOVEA_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define FOVEA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FOVEA_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define FOVEA_THREAD_SANITIZER 1
#endif
#endif
