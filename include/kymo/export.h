#pragma once

// KYMO_API marks what the shared libkymo exports; everything else is built hidden.
#if defined(__GNUC__)
#define KYMO_API __attribute__((visibility("default")))
#else
#define KYMO_API
#endif
