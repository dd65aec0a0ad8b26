/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks a loop that is compiled for the widest registers there are.
 */
#ifndef LEAVEOUT_WIDEST_H
#define LEAVEOUT_WIDEST_H

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

#endif
